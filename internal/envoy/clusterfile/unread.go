package clusterfile

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// removeUnread removes each Any whose type we do not read, because without its value it would mislead
// those who do: an UpstreamTlsContext without fields verifies no certificate. It must be called
// before the document is shared. It returns notes about what it removed, or nil.
//
// An Any takes the smallest part with it that can be left out: an entry of a map, an element of a
// list, or a field of the cluster. A list that loses all of its elements counts like an Any.
//
//	transport_socket: {name: tls, typed_config: ANY}                       -> transport_socket
//	load_balancing_policy: {policies: [{typed_extension_config: …ANY}, …]} -> policies[0]
//	typed_extension_protocol_options: {http: ANY, …}                       -> its entry
func (d *decoder) removeUnread(doc *Document) error {
	if !d.hasUnread {
		return nil
	}
	r := remover{new(messages.Invalid)}
	if doc.Endpoints != nil {
		_ = r.remove(doc.Endpoints.ProtoReflect(), "")
	}
	for i, c := range doc.Clusters {
		_ = r.remove(c.ProtoReflect(), fmt.Sprintf("clusters[%d]", i))
	}
	return d.located("", r.notes.Err())
}

type remover struct{ notes *messages.Invalid }

// indispensable has the messages that are never left out, whatever they contain.
var indispensable = map[protoreflect.FullName]bool{
	clusterName:    true,
	assignmentName: true,
	"envoy.config.endpoint.v3.LocalityLbEndpoints": true,
	"envoy.config.endpoint.v3.LbEndpoint":          true,
}

// remove removes what m contains, and returns "" if the rest of m can stay. Otherwise, it returns the
// type of the Any because of which m must be left out as a whole.
func (r remover) remove(m protoreflect.Message, path string) (because protoreflect.FullName) {
	name := m.Descriptor().FullName()
	if packed, ok := m.Interface().(*anypb.Any); ok {
		return r.removeWithin(packed, path)
	}
	if name.Parent() == "google.protobuf" { // large, and without any Any
		return ""
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		part := strings.TrimPrefix(path+"."+string(field.Name()), ".")
		var unread protoreflect.FullName
		switch {
		case field.IsMap() && field.MapValue().Message() != nil:
			r.removeEntries(v.Map(), part)
		case field.IsMap() || field.Message() == nil:
		case field.IsList():
			unread = r.removeElements(v.List(), part)
		default:
			unread = r.remove(v.Message(), part)
		}
		if !indispensable[name] {
			because = cmp.Or(unread, because)
		} else if r.noted(part, unread) {
			m.Clear(field)
		}
		return true
	})
	return because
}

// removeWithin removes the Anys within an Any that we read.
func (r remover) removeWithin(packed *anypb.Any, path string) protoreflect.FullName {
	t := cds.ReadType(packed.GetTypeUrl())
	if t == nil {
		return cds.NameOfType(packed.GetTypeUrl())
	}
	m := t.New()
	if proto.Unmarshal(packed.GetValue(), m.Interface()) != nil { // unreachable, because we have encoded it
		return t.Descriptor().FullName()
	}
	because := r.remove(m, path)
	packed.Value, _ = proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
	return because
}

func (r remover) removeEntries(entries protoreflect.Map, path string) {
	entries.Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		if r.noted(path, r.remove(v.Message(), path)) {
			entries.Clear(key)
		}
		return true
	})
}

// removeElements returns the type of an Any if no element is left.
func (r remover) removeElements(list protoreflect.List, path string) (because protoreflect.FullName) {
	kept := 0
	for i := range list.Len() {
		element := fmt.Sprintf("%s[%d]", path, i)
		if unread := r.remove(list.Get(i).Message(), element); r.noted(element, unread) {
			because = unread
			continue
		}
		list.Set(kept, list.Get(i))
		kept++
	}
	if list.Truncate(kept); kept > 0 {
		return ""
	}
	return because
}

// noted reports whether something is left out, and adds a note if it is.
func (r remover) noted(path string, unread protoreflect.FullName) bool {
	if unread != "" {
		r.notes.Add(path, "left out for clients, because %s is not read", unread)
	}
	return unread != ""
}
