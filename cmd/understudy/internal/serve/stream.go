package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// While some content is unknown, we may have nothing to send on a stream. The client would keep
// waiting because it can reach us. So after this long, we end the stream to let it try another
// server.
const responseTimeout = 5 * time.Second

type ads struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	ctx             context.Context // shared by all streams
	clients         *clients
	resources       *resources
	responseTimeout time.Duration
}

func (a *ads) StreamAggregatedResources(server discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	// We handle one request at a time, and send whatever is due after each one and whenever the
	// resources change.
	ctx, end := context.WithCancelCause(server.Context())
	defer context.AfterFunc(a.ctx, func() { end(nil) })()
	defer end(nil)
	s := a.clients.add(ctx, end)
	defer a.clients.remove(s)
	_ = server.SetHeader(metadata.Pairs("understudy-ping", "30s")) // how often clients may ping, see KeepaliveEnforcementPolicy
	requests := make(chan *discoveryv3.DiscoveryRequest)
	go func() {
		for {
			r, err := server.Recv()
			if err != nil {
				end(err)
				return
			}
			select {
			case requests <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	timeout := time.NewTimer(a.responseTimeout)
	defer timeout.Stop()
	for {
		now := a.resources.current.Load()
		if err := s.respond(now, server); err != nil {
			return err
		}
		select {
		case r := <-requests:
			if err := s.handle(r, now); err != nil {
				return err
			}
		case <-now.outdated:
		case <-timeout.C:
			if s.responses == 0 && (now.incomplete || !now.loaded) {
				return status.Error(codes.Unavailable, "not all files could be read yet, so there is no answer")
			}
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
	}
}

// topic is what a client has requested and received for one type.
type topic struct {
	names    map[string]bool   // nil before the first request
	wildcard bool              // requested everything
	sent     map[string]string // versions that the client has or has rejected, by name

	nonce, version string          // nonce and version of the last response
	waiting        bool            // the client hasn't answered the last response
	rejected       string          // last rejection we logged
	behind         bool            // the client doesn't have what we sent last
	seen           <-chan struct{} // snapshot.outdated of the last snapshot we compared with names
	held           int             // estimated memory for the names, in bytes
}

func (s *clientStream) handle(r *discoveryv3.DiscoveryRequest, now *snapshot) error {
	if len(r.GetResourceNames()) >= largeRequestNames {
		defer s.clients.largeRequests.enter()()
	}
	if err := s.check(r); err != nil {
		return err
	}
	log := s.clients.log.With("client", s.address)
	if s.node == "" && r.GetNode() != nil {
		s.node = logText(r.GetNode().GetId())
		log.Info("client connected", "node", s.node, "agent", logText(r.GetNode().GetUserAgentName()))
	}
	typeURL := r.GetTypeUrl()
	log = log.With("type", logText(typeURL[strings.LastIndexAny(typeURL, "./")+1:]))
	t := s.topics[typeURL]
	if t == nil {
		t = new(topic)
		s.topics[typeURL] = t
	}
	switch {
	case t.nonce != "" && t.nonce != r.GetResponseNonce():
		// This request and our last response crossed on the wire. The client has yet to answer that
		// response, and will repeat what it wants when it does.
		log.Debug("client answers an earlier response")
		return nil
	case t.waiting:
		s.recordAnswer(r, t, log)
	default:
		log.Debug("client request", "names", logNames(r.GetResourceNames()))
	}
	s.clients.hold(s, t.subscribe(r.GetResourceNames(), len(now.byType[typeURL])))
	isBehind := func(t *topic) bool { return t.behind }
	if !slices.ContainsFunc(slices.Collect(maps.Values(s.topics)), isBehind) {
		s.behindSince.Store(0)
	}
	return nil
}

func (t *topic) subscribe(list []string, all int) (more int) {
	// According to the protocol, a first request without names asks for everything. We return how
	// much the estimated memory has grown.
	wildcard := slices.Contains(list, "*") || len(list) == 0 && len(t.names) == 0 && (t.names == nil || t.wildcard)
	names := make(map[string]bool, len(list))
	for _, name := range list {
		names[name] = true
	}
	delete(names, "*")
	if wildcard == t.wildcard && maps.Equal(names, t.names) {
		return 0
	}
	t.names, t.wildcard, t.seen = names, wildcard, nil
	t.behind = t.behind && (wildcard || len(names) > 0)
	maps.DeleteFunc(t.sent, func(name, _ string) bool { return !wildcard && !names[name] })
	before := t.held
	if t.held = bytesPerName * len(names); wildcard {
		t.held += bytesPerName * all
	}
	for name := range names {
		t.held += len(name)
	}
	return t.held - before
}

func (s *clientStream) respond(now *snapshot, server discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	for _, typeURL := range slices.Sorted(maps.Keys(s.topics)) { // clusters before endpoints before listeners
		t := s.topics[typeURL]
		if t.waiting || t.seen == now.outdated {
			continue
		}
		t.seen = now.outdated
		names, versions, ok := now.response(typeURL, t)
		if !ok {
			continue
		}
		r := &discoveryv3.DiscoveryResponse{TypeUrl: typeURL}
		sum := sha256.New()
		for _, name := range names {
			found := now.byType[typeURL][name]
			r.Resources = append(r.Resources, found.content)
			_, _ = io.WriteString(sum, found.version) // writing to a hash never fails
		}
		s.responses++
		r.VersionInfo, r.Nonce = hex.EncodeToString(sum.Sum(nil)[:12]), strconv.Itoa(s.responses)
		t.sent, t.nonce, t.version, t.waiting = versions, r.Nonce, r.VersionInfo, true
		if t.behind = len(names) > 0; t.behind {
			s.behindSince.CompareAndSwap(0, time.Now().UnixNano())
		}
		if err := server.Send(r); err != nil {
			return err
		}
	}
	return nil
}
