"""What `ds4py chat` is made of: the conversation, the commands, the keyboard and the screen."""
