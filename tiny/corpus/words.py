"""Holds the words of the generated domains, in two pools without common words: one to train on, one held out."""

from __future__ import annotations

from dataclasses import dataclass

from .split import rank


def listed(text: str) -> tuple[str, ...]:
    """Returns the words of a text."""
    return tuple(text.split())


NOUNS = listed("""
account action actor address agent alarm album alert amount anchor animal answer apple archive area arrow article
asset atlas author badge balance band bank barrel base basin basket batch battery beacon beam bench bicycle bill bin
bird block board boat body bolt book border bottle bottom box branch brand bread bridge bucket budget buffer bug
building bundle bus button cabin cable cache calendar call camera camp canal candle canvas car card cargo carpet
carrier case castle catalog category cell center chain chair channel chapter charge chart check choice circle city
claim class client climate clock cloud club cluster coach coast code coin color column comment community company
component concert condition contact container content contract copy corner cost counter country course court cover
credit crew crop currency curve customer cycle damage dataset deadline deal decision deck degree delay delivery demand
deposit depth desert design desk detail device diagram dinner discount dish disk district dock doctor document dollar
domain door draft drawer dream driver drum edge editor effect effort element email employee energy engine entry
episode error estimate event exam exchange exit expense export fabric factor factory failure family farm feature fee
feed fence fiber field figure file filter finger fire flag flame flavor fleet flight floor flow flower folder food
forecast forest form frame freight friend fruit fuel function fund garage garden gate gear girl glass goal grade grain
graph grid group guard guest guide habit hall hammer hand harbor harvest hat head health heat height helmet hill
history hobby holder holiday home honey horse hospital host hotel hour house image impact income index industry input
insect insurance interest interval invoice island item jacket job join journal journey judge juice jump junction key
kettle keyboard kitchen label lake lamp language laptop laser layer leader leaf league lease lecture length lens
lesson letter level library license light limit line link list load loan lobby location lock log loop machine magazine
mail manager map margin market mask match material meal measure medal meeting member memory menu message metal meter
method mile minute mirror mission mode model module moment monitor month motor mountain mouse movie museum music
network news night node noise note notice number object offer office oil option orange orbit order organ origin outlet
output owner package page paint palace panel paper parcel park part partner party pass path patient pattern payment
peak pencil period permit person phase phone photo piano picture pilot pipe pixel place plan planet plant plate
platform player plot pocket point policy pool port post potato power press price printer prize process product profile
profit program project protocol province pulse pump purchase quality quantity quarter query queue quota rail rain
range rate ratio reader reason receipt recipe record refund region relay release remark rent repair reply report
request reserve resource result return revenue review reward ride ring risk river road robot rocket role roof room
root route row rule runner safety salary sale salt sample sand scale scene schedule school science scope score screen
script sea season seat section sector seed segment sensor sentence series server service session shadow shape share
sheet shelf shell shelter shift ship shirt shop shore show side signal silver site size skill sky slide slot snow
socket soil song sound source space speaker speed spring square stack staff stage stair station statistic step stock
stone storage store storm story strategy stream street string studio style subject sugar summary sun supplier supply
surface survey switch symbol system table tablet tank target task tax taxi team temple tenant tent term terminal test
text theater theme theory thread ticket tide tile timber time tire title token tone tool topic tour tower town track
trade traffic trail train transfer travel tree trend trial trip truck trust tunnel turbine type unit update user
valley value valve vault vehicle vendor venue version vessel video view village visit voice volume vote wagon wall
wallet warehouse warning water wave weather website week weight wheel window wine winner winter wire wood worker
workshop year yield zone
""")

QUALIFIERS = listed("""
active actual added alternate annual approved archived average backup basic billing bright broken cached central
checked closed cold common complete confirmed current custom daily dark default deleted delivered digital direct
disabled domestic double dry early east empty enabled estimated expected expired external failed fast final first
fixed flat foreign free fresh full future general global gold green hidden high hourly idle initial inner internal
joint large last late latest left legacy linked live local locked long lost low main major manual max median medium
min minor missing mobile modern monthly narrow national native net new next nominal north official offline old online
open optional original outer overdue paid partial past pending planned preferred previous primary prime private public
quick quiet random raw ready real recent red regional regular rejected related remote required retail right safe
secondary secure senior shared shipped short silent simple single slow small smart soft solid south special spare
stable standard static steady strong temporary thin third total unique unpaid upper urban urgent valid verified
virtual visible warm weekly west white wide wild yellow young
""")

FIRST = listed("""
Aaron Abigail Adele Ahmed Akira Alice Amara Amelia Anders Andrea Anika Anton Arjun Astrid Beatriz Benjamin Bruno
Camila Carlos Caroline Cecilia Chen Chloe Clara Damian Dana Daniel Darius Diana Dmitri Edith Elena Elias Elif Emil
Emma Erik Esther Eva Farid Fatima Felix Fiona Florian Gabriel George Grace Greta Hana Hannah Harold Hector Helena
Henry Hugo Ibrahim Ida Imran Ines Ingrid Irene Isaac Ivan Jack Jasmine Joanna Jonas Jorge Judith Julia Kamal Karen
Kofi Laila Lars Laura Lena Leo Lina Louis Lucia Magnus Marcus Maria Marta Mateo Maya Mina Miriam Nadia Naomi Nils Nina
Noah Nora Olga Oliver Omar Oscar Paolo Paula Peter Petra Priya Quinn Rafael Rania Rita Robert Rosa Ruth Sami Samuel
Sara Selma Simon Sofia Stefan Tamara Tara Theo Tomas Ulrich Uma Ursula Valentina Vera Victor Walter Wei Wendy Xenia
Yara Yusuf Zainab Zoe
""")

LAST = listed("""
Abbott Adeyemi Ahmadi Almeida Andersson Baker Barros Becker Bennett Bianchi Brandt Brooks Calderon Campbell Carvalho
Castillo Chowdhury Clarke Costa Cruz Dalton Delgado Demir Diaz Dubois Duncan Eriksen Evans Farrell Fernandez Fischer
Fleming Fontaine Foster Garcia Gibson Gomez Graham Gupta Haddad Hansen Harris Hayashi Hoffman Holmes Hughes Ivanov
Jansen Jensen Johnston Kaplan Keller Khan Kimura Kowalski Kruger Larsen Laurent Lindholm Lopez Lund Mackenzie Marino
Martins Mbeki Mehta Meyer Moreau Morgan Mueller Nakamura Navarro Nguyen Nielsen Novak Oconnor Okafor Olsen Ortega Osei
Parker Patel Pereira Petrov Popescu Quist Rahman Ramos Reyes Richter Rossi Salazar Sanders Santos Sato Schmidt Silva
Singh Sokolov Sorensen Suzuki Svensson Tanaka Thompson Torres Turner Usman Vargas Vogel Walsh Watanabe Weber Wilson
Wong Yamada Yilmaz Young Zhang Zimmer
""")

PLACES = listed("""
Accra Adelaide Algiers Amman Amsterdam Ankara Antwerp Athens Auckland Bangkok Barcelona Basel Beirut Belgrade Bergen
Berlin Bilbao Bogota Boston Bremen Brisbane Brussels Budapest Cairo Calgary Caracas Chicago Cologne Copenhagen Cork
Dakar Dallas Delhi Denver Dresden Dublin Durban Edinburgh Florence Frankfurt Geneva Genoa Ghent Glasgow Graz Hamburg
Hanoi Havana Helsinki Houston Istanbul Jakarta Karachi Kyoto Lagos Leipzig Lima Lisbon London Lyon Madrid Malaga
Manila Marseille Medellin Melbourne Milan Montreal Munich Nairobi Naples Nantes Osaka Oslo Ottawa Palermo Paris Perth
Phoenix Porto Prague Quito Riga Rome Rotterdam Salzburg Santiago Seattle Seoul Seville Sofia Stockholm Sydney Tallinn
Tampere Tokyo Toronto Trieste Tunis Turin Utrecht Valencia Vienna Vilnius Warsaw Wellington Zagreb Zurich
""")

HELD_OUT = 0.2
"""The share of each list that only held-out documents use."""


@dataclass(frozen=True)
class Words:
    """One pool of words. Both pools share the endings of keys (`id`, `name`, `count`), which are grammar."""

    nouns: tuple[str, ...]
    qualifiers: tuple[str, ...]
    first: tuple[str, ...]
    last: tuple[str, ...]
    places: tuple[str, ...]


def pool(heldout: bool) -> Words:
    """Returns the words of the training or of the held-out part. A word is in one of them, by its hash."""
    lists = (NOUNS, QUALIFIERS, FIRST, LAST, PLACES)
    return Words(*(tuple(word for word in words if is_heldout(word) == heldout) for words in lists))


def is_heldout(word: str) -> bool:
    """Tells whether a word is kept for held-out documents, in any spelling of its case."""
    return rank(word.lower()) < HELD_OUT * 2**64
