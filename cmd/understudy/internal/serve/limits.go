package serve

import (
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Limits of what clients may use (docs/limits.md). They are much higher than the needs of a gRPC
// client: one stream with three types and, for each type, one name per cluster.
const (
	maxMessage = 256 << 10 // bytes of a request
	maxStreams = 8         // concurrent streams on one connection
	maxTypes   = 16        // resource types requested on a stream
	maxName    = 2048      // bytes of a name, a type, a version or a node id
	maxLogged  = 500       // bytes of a client's text in the log
	maxListed  = 20        // names that the log lists for a request

	maxClientMemory = 32 << 20 // estimated bytes for the requests of all clients
	bytesPerName    = 200      // estimated bytes for a requested name, in addition to those of the name

	largeRequestNames = 100     // names from which on a request is large
	largeRequestBytes = 4 << 10 // bytes from which on a request is large
)

func serverOptions(largeRequests *lane) []grpc.ServerOption {
	const window = 64 << 10 // bytes that a client may send before the server reads them
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name), largeRequests}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.ConnectionTimeout(20 * time.Second),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ReadBufferSize(8 << 10),
		grpc.WriteBufferSize(8 << 10),
	}
}

// codec decodes only one large request at a time, because decoding takes several times the
// request's size in memory.
type codec struct {
	encoding.CodecV2
	largeRequests *lane
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if data.Len() > largeRequestBytes {
		defer c.largeRequests.enter()()
	}
	return c.CodecV2.Unmarshal(data, v)
}

// lane admits one large request at a time. After each request, it pauses for as long as the request
// took, so that large requests use at most half of one processor.
type lane struct{ mu sync.Mutex }

// enter waits until the caller may proceed. The caller must call leave afterwards.
func (l *lane) enter() (leave func()) {
	l.mu.Lock()
	startTime := time.Now()
	return func() { time.AfterFunc(time.Since(startTime), l.mu.Unlock) }
}
