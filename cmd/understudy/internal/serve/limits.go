package serve

import (
	"cmp"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
)

// Limits bound the memory and the connections that clients can use. docs/limits.md describes each
// limit. Zero means the default.
type Limits struct {
	Message     int // bytes of a request
	Connections int // connections of all clients together
	Streams     int // concurrent streams on one connection
	Types       int // resource types requested on a stream
	Names       int // names of each type requested on a stream
	Name        int // bytes of a name, a type or a version
	NodeID      int // bytes of a node's id or user agent
	Logged      int // bytes of a client's text in the log
	Memory      int // estimated MiB held for the requests of all clients
}

// defaultLimits are much higher than the needs of a gRPC client: one stream with three types and,
// for each type, one name per cluster.
var defaultLimits = Limits{
	Message:     1 << 20,
	Connections: 2000,
	Streams:     8,
	Types:       16,
	Names:       5000,
	Name:        2048,
	NodeID:      1024,
	Logged:      500,
	Memory:      32,
}

type flag struct {
	name, usage  string
	value        *int
	defaultValue int
}

func (l *Limits) flags() []flag {
	d := defaultLimits
	return []flag{
		{"max-message", "maximum `bytes` of a client's request", &l.Message, d.Message},
		{"max-connections", "maximum `number` of connections", &l.Connections, d.Connections},
		{"max-streams", "maximum `number` of streams on a connection", &l.Streams, d.Streams},
		{"max-types", "maximum `number` of resource types requested on a stream", &l.Types, d.Types},
		{"max-names", "maximum `number` of names of each type requested on a stream", &l.Names, d.Names},
		{"max-name", "maximum `bytes` of a requested name or type", &l.Name, d.Name},
		{"max-node-id", "maximum `bytes` of a client's node id", &l.NodeID, d.NodeID},
		{"max-logged", "maximum `bytes` of a client's text in the log", &l.Logged, d.Logged},
		{"client-memory", "maximum `MiB` for the requests of all clients, as an estimate", &l.Memory, d.Memory},
	}
}

func (l *Limits) addFlags(flagSet interface {
	IntVar(value *int, name string, defaultValue int, usage string)
}) {
	for _, f := range l.flags() {
		flagSet.IntVar(f.value, f.name, f.defaultValue, f.usage)
	}
}

func (l Limits) withDefaults() (Limits, error) {
	for _, f := range l.flags() {
		if *f.value < 0 || *f.value > 1<<30 {
			return l, fmt.Errorf("limit --%s is %d, want 1 to %d", f.name, *f.value, 1<<30)
		}
		*f.value = cmp.Or(*f.value, f.defaultValue)
	}
	return l, nil
}

func (l Limits) serverOptions(largeRequests *lane) []grpc.ServerOption {
	const window = 64 << 10 // bytes that a client may send before the server reads them
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name), largeRequests}),
		grpc.MaxRecvMsgSize(l.Message),
		grpc.MaxConcurrentStreams(uint32(l.Streams)),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.ConnectionTimeout(20 * time.Second),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ReadBufferSize(8 << 10),
		grpc.WriteBufferSize(8 << 10),
	}
}

// limitedListener is a listener that immediately closes connections beyond a limit. Their clients
// then use another server or keep their endpoints.
type limitedListener struct {
	net.Listener
	slots     chan struct{}
	onRefused func(net.Addr)
}

func (b limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.slots <- struct{}{}:
			return countedConn{conn, sync.OnceFunc(func() { <-b.slots })}, nil
		default:
			_ = conn.Close()
			b.onRefused(conn.RemoteAddr())
		}
	}
}

type countedConn struct {
	net.Conn
	release func()
}

func (c countedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
