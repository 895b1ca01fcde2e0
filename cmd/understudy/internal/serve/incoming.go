package serve

import (
	"slices"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// incomingRequest is a client's request that is being received. A request that exceeds a limit is
// not decoded. Of other requests, only the fields that the server uses are decoded, because one
// megabyte may hold half a million names, or node metadata that takes thirty times as much memory.
type incomingRequest struct {
	limits  Limits
	fields  fields
	message proto.Message

	limitErr *limitError
}

type fields struct {
	node, errorDetail protowire.Number
	names             []protowire.Number // repeated strings, and the map of versions in incremental requests
	texts             []protowire.Number // strings: version, type and nonce
}

var (
	stateFields = fields{node: 2, errorDetail: 6, names: []protowire.Number{3}, texts: []protowire.Number{1, 4, 5}}
	deltaFields = fields{node: 1, errorDetail: 7, names: []protowire.Number{3, 4, 5}, texts: []protowire.Number{2, 6}}
	// statusFields and nodeFields are the fields of google.rpc.Status and of a node that the server
	// uses.
	statusFields = []protowire.Number{2}    // message
	nodeFields   = []protowire.Number{1, 6} // id, user_agent_name
)

// codec decodes incoming requests, and leaves everything else to gRPC's codec. It decodes only one
// large request at a time, because decoding takes several times the request's size in memory.
type codec struct {
	encoding.CodecV2
	largeRequests *lane
}

// largeRequestBytes is the size in bytes above which only one request is decoded at a time.
const largeRequestBytes = 4 << 10

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*incomingRequest)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if data.Len() > largeRequestBytes {
		defer c.largeRequests.enter()()
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	return in.decode(buffer.ReadOnlyData())
}

// decode decodes a request. If the request exceeds a limit, decode sets limitErr instead.
func (in *incomingRequest) decode(data []byte) error {
	names := make(map[protowire.Number]int)
	kept, err := filter(data, func(number protowire.Number, value []byte) ([]byte, bool) {
		switch {
		case number == in.fields.node:
			return in.filterMessage(value, nodeFields, in.limits.NodeID, "max-node-id", "a node id or agent")
		case number == in.fields.errorDetail:
			return in.filterMessage(value, statusFields, in.limits.Message, "max-message", "a reason")
		case slices.Contains(in.fields.names, number):
			names[number]++
			in.check(names[number], in.limits.Names, "max-names", "names in a request")
			in.check(len(value), in.limits.Name, "max-name", "bytes in a name")
			return value, true
		case slices.Contains(in.fields.texts, number):
			in.check(len(value), in.limits.Name, "max-name", "bytes in a type, version or nonce")
			return value, true
		}
		return nil, false
	})
	if err != nil || in.limitErr != nil {
		return err
	}
	return proto.Unmarshal(kept, in.message)
}

// filterMessage removes all except the given fields from an encoded inner message. It sets limitErr
// if one of these fields is longer than maxBytes.
func (in *incomingRequest) filterMessage(data []byte, fields []protowire.Number, maxBytes int, flagName, description string) ([]byte, bool) {
	kept, err := filter(data, func(number protowire.Number, value []byte) ([]byte, bool) {
		if !slices.Contains(fields, number) {
			return nil, false
		}
		in.check(len(value), maxBytes, flagName, "bytes in "+description)
		return value, true
	})
	return kept, err == nil
}

func (in *incomingRequest) check(n, maximum int, flagName, description string) {
	if n > maximum && in.limitErr == nil {
		in.limitErr = newLimitError(flagName, n, description, maximum)
	}
}

// filter returns an encoded message with only the fields that keep accepts. keep receives the value
// of each string or message field and may replace it. All other fields are removed.
func filter(data []byte, keep func(protowire.Number, []byte) ([]byte, bool)) ([]byte, error) {
	kept := make([]byte, 0, len(data))
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return nil, protowire.ParseError(n)
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			if value, ok := keep(number, value); ok {
				kept = protowire.AppendTag(kept, number, kind)
				kept = protowire.AppendBytes(kept, value)
			}
		}
		data = data[n:]
	}
	return kept, nil
}
