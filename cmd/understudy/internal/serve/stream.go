package serve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	deltav3 "github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	sotwv3 "github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// ads serves ADS streams. Each stream has its own go-control-plane server, which receives only
// requests within the limits and for a type that is served.
type ads struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	clients *clients
	gate    *gate
}

// StreamAggregatedResources serves the state-of-the-world variant. It uses ordered ADS, because
// go-control-plane would otherwise scan all of the stream's resource types for each message.
func (a *ads) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return a.serve(stream, false, func(ctx context.Context, m *messageStream) error {
		return sotwv3.NewServer(ctx, a.newWatcher(m), nil, sotwv3.WithOrderedADS(), sotwv3.WithLogger(discardLogger{})).
			StreamHandler(stateStream{stream, m}, resourcev3.AnyType)
	})
}

func (a *ads) DeltaAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return a.serve(stream, true, func(ctx context.Context, m *messageStream) error {
		return deltav3.NewServer(ctx, a.newWatcher(m), nil, deltav3.WithLogger(discardLogger{})).
			DeltaStreamHandler(deltaStream{stream, m}, resourcev3.AnyType)
	})
}

func (a *ads) newWatcher(m *messageStream) watcher { return watcher{a.clients, m.client, a.gate} }

func (a *ads) serve(stream grpc.ServerStream, incremental bool, handle func(context.Context, *messageStream) error) error {
	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	m := &messageStream{stream: stream, clients: a.clients, gate: a.gate, client: a.clients.add(ctx, incremental, end)}
	defer a.clients.remove(m.client)
	_ = stream.SetHeader(metadata.Pairs("understudy-ping", "30s")) // ping interval for clients, which the server's enforcement policy allows
	err := handle(ctx, m)
	if limitErr, ok := errors.AsType[*limitError](context.Cause(ctx)); ok {
		return status.Error(codes.ResourceExhausted, limitErr.Error())
	}
	return err
}

type messageStream struct {
	stream  grpc.ServerStream
	clients *clients
	gate    *gate
	client  *clientStream
	mu      sync.Mutex
}

func (m *messageStream) receive(r proto.Message, numbers fields) error {
	in := &incomingRequest{limits: m.clients.limits, fields: numbers, message: r}
	if err := m.stream.RecvMsg(in); err != nil {
		return err
	}
	if in.limitErr != nil {
		return m.clients.refuse(m.client, in.limitErr)
	}
	return nil
}

// send sends a response. It is safe for concurrent use.
func (m *messageStream) send(r proto.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stream.SendMsg(r)
}

type stateStream struct {
	grpc.ServerStream
	*messageStream
}

// Recv returns the next request for a type that is served.
//
// If a request acknowledges or rejects a response, Recv sets its version to that of the response. A
// NACK contains an older version. From this, go-control-plane would conclude that the client lacks
// the response, and send it again.
func (s stateStream) Recv() (*discoveryv3.DiscoveryRequest, error) {
	for {
		r := new(discoveryv3.DiscoveryRequest)
		if err := s.receive(r, stateFields); err != nil {
			return nil, err
		}
		info, err := s.clients.recordRequest(s.client, request{r.GetNode(), r.GetTypeUrl(), r.GetResourceNames(), nil, r.GetVersionInfo(), r.GetResponseNonce(), r.GetErrorDetail()})
		if err != nil {
			return nil, err
		}
		if r.ErrorDetail = nil; info.version != "" {
			r.VersionInfo = info.version
		}
		if isServed(r.GetTypeUrl()) {
			return r, nil
		}
		if info.firstOfType && s.gate.isComplete() {
			if err := s.Send(&discoveryv3.DiscoveryResponse{TypeUrl: r.GetTypeUrl(), VersionInfo: noVersion, Nonce: noVersion}); err != nil {
				return nil, err
			}
		}
	}
}

// Send sends a response. It replaces go-control-plane's version, a counter, with a hash of the
// content, which is the same in all replicas.
func (s stateStream) Send(r *discoveryv3.DiscoveryResponse) error {
	names := make([]string, len(r.GetResources()))
	for i, resource := range r.GetResources() {
		names[i] = nameOf(resource.GetValue())
	}
	s.clients.recordResponse(s.client, r.GetTypeUrl(), response{r.GetNonce(), r.GetVersionInfo(), names, time.Now()})
	if isServed(r.GetTypeUrl()) {
		r.VersionInfo = versionOf(r.GetResources())
	}
	return s.send(r)
}

func versionOf(resources []*anypb.Any) string {
	sorted := slices.Clone(resources)
	slices.SortFunc(sorted, func(a, b *anypb.Any) int { return strings.Compare(nameOf(a.GetValue()), nameOf(b.GetValue())) })
	sum := sha256.New()
	for _, r := range sorted {
		_ = binary.Write(sum, binary.BigEndian, uint64(len(r.GetValue()))) // writes to a hash never fail
		_, _ = sum.Write(r.GetValue())
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

type deltaStream struct {
	grpc.ServerStream
	*messageStream
}

func (s deltaStream) Recv() (*discoveryv3.DeltaDiscoveryRequest, error) {
	for {
		r := new(discoveryv3.DeltaDiscoveryRequest)
		if err := s.receive(r, deltaFields); err != nil {
			return nil, err
		}
		info, err := s.clients.recordRequest(s.client, request{r.GetNode(), r.GetTypeUrl(), r.GetResourceNamesSubscribe(), r.GetResourceNamesUnsubscribe(), "", r.GetResponseNonce(), r.GetErrorDetail()})
		if err != nil {
			return nil, err
		}
		if r.ErrorDetail = nil; isServed(r.GetTypeUrl()) {
			return r, nil
		}
		if info.firstOfType && s.gate.isComplete() {
			if err := s.Send(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: r.GetTypeUrl(), SystemVersionInfo: noVersion, Nonce: noVersion}); err != nil {
				return nil, err
			}
		}
	}
}

func (s deltaStream) Send(r *discoveryv3.DeltaDiscoveryResponse) error {
	names := make([]string, len(r.GetResources()))
	for i, resource := range r.GetResources() {
		names[i] = resource.GetName()
	}
	s.clients.recordResponse(s.client, r.GetTypeUrl(), response{r.GetNonce(), r.GetSystemVersionInfo(), names, time.Now()})
	return s.send(r)
}

// noVersion is the version and the nonce of the empty response to a request for a type that is not
// served. The response makes the client stop waiting.
const noVersion = "none"

// isServed reports whether to pass requests for the type to go-control-plane. It accepts requests
// without a type, for which go-control-plane ends the stream.
func isServed(typeURL string) bool {
	return typeURL == "" || typeURL == resourcev3.EndpointType || typeURL == resourcev3.ClusterType || typeURL == resourcev3.ListenerType
}
