package eds

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

type misbehavior struct {
	misbehave  func(*adstest.Stream) error // serves the rest of the first stream, and each later stream
	handleConn func(net.Conn)              // if set, serves each connection after the first, instead of gRPC
	metric     string
	count      int64
	log        string
}

var misbehaviors = map[string]misbehavior{
	"garbage bytes": {
		handleConn: func(c net.Conn) { c.Write([]byte("what is this\r\n\r\n")); c.Close() },
		metric:     "understudy.eds.stream_failures", count: 1, log: "failed",
	},
	"garbage message": {
		misbehave: func(s *adstest.Stream) error { return errors.Join(s.SendMsg(raw{[]byte("\xff garbage")}), s.Drain()) },
		metric:    "understudy.eds.stream_failures", count: 1, log: "failed to unmarshal",
	},
	"garbage resource": {
		misbehave: func(s *adstest.Stream) error {
			invalid := &anypb.Any{TypeUrl: adstest.EndpointsURL, Value: []byte("\xff garbage")}
			return errors.Join(s.Send(&discoveryv3.DiscoveryResponse{TypeUrl: adstest.EndpointsURL, VersionInfo: "2", Nonce: "n2", Resources: []*anypb.Any{invalid}}), s.Drain())
		},
		metric: "understudy.eds.nacks", count: 1, log: "resource 0: not a ClusterLoadAssignment",
	},
	"broken rules": {
		misbehave: func(s *adstest.Stream) error {
			gap := adstest.Cluster("c", "10.0.0.1:1")
			gap.Endpoints[0].Priority = 9
			return errors.Join(s.Respond("2", "n2", gap), s.Drain())
		},
		metric: "understudy.eds.nacks", count: 1, log: "c: endpoints[0].priority: priority 9 is used",
	},
	"unknown type": {
		misbehave: func(s *adstest.Stream) error {
			return errors.Join(s.Send(&discoveryv3.DiscoveryResponse{TypeUrl: "type.googleapis.com/what", VersionInfo: "2", Nonce: "n2"}), s.Drain())
		},
		metric: "understudy.eds.responses", count: 2, log: `type "type.googleapis.com/what"`,
	},
	"another name": {
		misbehave: func(s *adstest.Stream) error {
			return errors.Join(s.Respond("2", "n2", adstest.Cluster("d", "10.0.0.1:1")), s.Drain())
		},
		metric: "understudy.eds.responses", count: 2,
	},
	"1 GiB": {
		misbehave: func(s *adstest.Stream) error { return errors.Join(s.SendMsg(make(raw, 1024)), s.Drain()) },
		metric:    "understudy.eds.stream_failures", count: 1, log: "received message larger than max (1073741824 vs. 67108864)",
	},
	"half a response, then a reset": {
		handleConn: sendHalfResponse,
		metric:     "understudy.eds.stream_failures", count: 1, log: "failed", // the rest of the text depends on timing
	},
	"RESOURCE_EXHAUSTED forever": {
		misbehave: func(*adstest.Stream) error { return status.Error(codes.ResourceExhausted, "too many clients") },
		metric:    "understudy.eds.stream_failures", count: 2, log: "too many clients",
	},
	"immediate end of each stream": {
		misbehave: func(*adstest.Stream) error { return nil },
		metric:    "understudy.eds.stream_failures", count: 2, log: "EOF",
	},
}

// A server sends one backend and then misbehaves. No call may fail or reach another backend, and a
// metric and the log must report the problem. When the server works again, it sends a second
// backend, which must then get the calls.
func TestCallsContinueWithMisbehavingServer(t *testing.T) {
	for name, h := range misbehaviors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := backend(t), backend(t)
			misbehaving, recovered := make(chan struct{}), make(chan struct{})
			gate := &gateListener{Listener: listen(t), handleConn: h.handleConn, recovered: recovered}
			script := func(s *adstest.Stream) error {
				s.Recv()
				switch {
				case isClosed(recovered):
					return errors.Join(s.Respond("3", "n3", adstest.Cluster("c", b)), s.Drain())
				case s.Number == 1:
					if err := s.Respond("1", "n1", adstest.Cluster("c", a)); err != nil {
						return err
					}
					<-misbehaving
				}
				if h.misbehave == nil {
					return nil
				}
				done := make(chan error, 1)
				go func() { done <- h.misbehave(s) }()
				select {
				case err := <-done:
					return err
				case <-recovered:
					return nil
				}
			}
			server := adstest.Serve(gate, script, grpc.ForceServerCodecV2(rawCodec{encoding.GetCodecV2("proto")}))
			t.Cleanup(server.Stop)

			c := newTraffic(t, "eds://"+gate.Addr().String()+"/c")
			c.wantAllCallsTo(a, 10)
			close(misbehaving)
			c.metrics.wait(t, h.metric, h.count)
			c.wantAllCallsTo(a, 100)
			if h.log != "" && logged.Count(gate.Addr().String(), h.log) == 0 {
				t.Errorf("no log line contains %s and %q", gate.Addr(), h.log)
			}
			close(recovered)
			c.awaitCallTo(b)
			c.metrics.wait(t, "understudy.eds.connected", 1)
			c.conn.Close()
			c.metrics.waitFor(t, "understudy.eds.connected", func(n int64) bool { return n == 0 })
		})
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// gateListener passes its first connection to gRPC, and also all connections after recovered is
// closed. It passes the connections in between to handleConn, if that is set.
type gateListener struct {
	net.Listener
	handleConn  func(net.Conn)
	recovered   <-chan struct{}
	hasAccepted atomic.Bool
}

func (g *gateListener) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil || !g.hasAccepted.Swap(true) || g.handleConn == nil || isClosed(g.recovered) {
			return c, err
		}
		go g.handleConn(c)
	}
}

// raw is an encoded message that consists of several pieces. A nil piece represents 1 MiB of zeros.
type raw [][]byte

var zeros = make([]byte, 1<<20)

type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	parts, ok := v.(raw)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	var buffers mem.BufferSlice
	for _, part := range parts {
		if part == nil {
			part = zeros
		}
		buffers = append(buffers, mem.SliceBuffer(part))
	}
	return buffers, nil
}

// sendHalfResponse uses just enough of HTTP/2 to send the first half of a response, and then resets
// the connection.
func sendHalfResponse(c net.Conn) {
	// A server may send a response only on a stream that the client has opened, so wait for a
	// stream.
	if !readUntilHeaders(c) {
		return
	}
	const stream = 1
	c.Write(frame(4, 0, 0, nil))
	c.Write(frame(1, 4, stream, append([]byte{0x88, 0x0f, 0x10, 16}, "application/grpc"...)))
	c.Write(frame(0, 0, stream, append([]byte{0, 0, 0, 3, 0xe8}, "half of it"...)))
	c.(*net.TCPConn).SetLinger(0) // makes Close send a reset
	c.Close()
}

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	header := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return append(binary.BigEndian.AppendUint32(header, stream), payload...)
}

func readUntilHeaders(c net.Conn) bool {
	c.Write(frame(4, 0, 0, nil))
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(c, preface); err != nil {
		return false
	}
	for {
		header := make([]byte, 9)
		if _, err := io.ReadFull(c, header); err != nil {
			return false
		}
		payload := make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
		if _, err := io.ReadFull(c, payload); err != nil {
			return false
		}
		if header[3] == 1 {
			return true
		}
	}
}
