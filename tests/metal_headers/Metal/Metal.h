#pragma once
// What of Foundation and Metal the launcher uses, declared from Apple's documentation: enough for a compiler to check
// its sources where there is no macOS.

typedef unsigned long NSUInteger;
typedef bool BOOL;
#define nil nullptr
#define NO false

__attribute__((objc_root_class))
@interface NSObject
+ (instancetype)new;
@end
@protocol NSObject
@end
@interface NSString : NSObject
@property(readonly) const char* UTF8String;
+ (instancetype)stringWithUTF8String:(const char*)text;
@end
@interface NSError : NSObject
@property(readonly) NSString* localizedDescription;
@end
typedef struct {
    unsigned long state;
    id __unsafe_unretained* items;
    unsigned long* mutations;
    unsigned long extra[5];
} NSFastEnumerationState;
@interface NSMutableArray<T> : NSObject
+ (instancetype)array;
- (void)addObject:(T)object;
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id __unsafe_unretained*)objects
                                    count:(NSUInteger)count;
@end

typedef struct {
    NSUInteger width, height, depth;
} MTLSize;
MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth);
enum MTLResourceOptions : NSUInteger { MTLResourceStorageModeShared };
enum MTLBarrierScope : NSUInteger { MTLBarrierScopeBuffers };
enum MTLDispatchType : NSUInteger { MTLDispatchTypeSerial };

@interface MTLCompileOptions : NSObject
@property BOOL fastMathEnabled;
@end
@protocol MTLFunction <NSObject>
@end
@protocol MTLLibrary <NSObject>
- (id<MTLFunction>)newFunctionWithName:(NSString*)name;
@end
@protocol MTLBuffer <NSObject>
@end
@protocol MTLComputePipelineState <NSObject>
@property(readonly) NSUInteger threadExecutionWidth, maxTotalThreadsPerThreadgroup;
@end
@protocol MTLComputeCommandEncoder <NSObject>
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)threads;
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope;
- (void)endEncoding;
@end
@protocol MTLCommandBuffer <NSObject>
@property(readonly) NSError* error;
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type;
- (void)commit;
- (void)waitUntilCompleted;
@end
@protocol MTLCommandQueue <NSObject>
- (id<MTLCommandBuffer>)commandBuffer;
@end
@protocol MTLDevice <NSObject>
@property(readonly) BOOL hasUnifiedMemory;
- (id<MTLCommandQueue>)newCommandQueue;
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source options:(MTLCompileOptions*)options error:(NSError**)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function error:(NSError**)error;
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void*)pointer
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(void (^)(void* pointer, NSUInteger length))deallocator;
@end
extern "C" id<MTLDevice> MTLCreateSystemDefaultDevice();
