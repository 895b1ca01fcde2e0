package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unique"
)

// This file parses responses of the API server and limits their size. The code uses neither the
// network nor the clock.

const (
	serviceLabel  = "kubernetes.io/service-name"
	priorityLabel = "understudy.dev/priority"
	weightLabel   = "understudy.dev/weight"

	maxEndpoints = 1000 // maximum in a slice (discovery/v1)
	maxPorts     = 100  // maximum in a slice
	maxHints     = 8    // maximum for an endpoint, separately for zones and nodes
	maxText      = 253  // bytes of the name of an object or a node
)

// slice holds the fields of an EndpointSlice (discovery.k8s.io/v1) that this package uses.
type slice struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
		Labels          labels `json:"labels"`
		Annotations     struct {
			Ended string `json:"k8s.io/initial-events-end"`
		} `json:"annotations"`
	} `json:"metadata"`
	AddressType string    `json:"addressType"`
	Endpoints   endpoints `json:"endpoints"` // at most maxEndpoints+1, so that an excess is noticed
	Ports       ports     `json:"ports"`     // at most maxPorts+1, so that an excess is noticed
}

// long reports whether a string in the slice is longer than the API allows.
func (s *slice) long() bool {
	texts := []string{s.Metadata.Name, s.AddressType}
	for _, value := range s.Metadata.Labels {
		texts = append(texts, value)
	}
	for _, p := range s.Ports {
		texts = append(texts, p.Name, p.Protocol, p.AppProtocol)
	}
	tooLong := func(text string) bool { return len(text) > maxText }
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if tooLong(e.address) || tooLong(e.uid) || tooLong(e.node) || tooLong(e.zone) || slices.ContainsFunc(e.forZones, tooLong) || slices.ContainsFunc(e.forNodes, tooLong) {
			return true
		}
	}
	return slices.ContainsFunc(texts, tooLong)
}

type labels map[string]string

func (l *labels) UnmarshalJSON(b []byte) error {
	var all map[string]string
	err := json.Unmarshal(b, &all)
	for _, name := range []string{serviceLabel, priorityLabel, weightLabel} {
		if value, given := all[name]; given {
			if *l == nil {
				*l = make(labels)
			}
			(*l)[name] = value
		}
	}
	return err
}

// endpoint holds the fields of an endpoint that this package uses. Names of zones and nodes are
// interned, because many endpoints share them.
type endpoint struct {
	rank
	address            string // first address, or ""; Kubernetes gives no meaning to the others
	uid, node, zone    string
	forZones, forNodes []string
}

type endpoints []endpoint

func (l *endpoints) UnmarshalJSON(b []byte) error {
	var given struct {
		Addresses  [1]string `json:"addresses"`
		Conditions struct {
			Ready       *bool `json:"ready"`
			Serving     *bool `json:"serving"`
			Terminating *bool `json:"terminating"`
		} `json:"conditions"`
		TargetRef struct {
			UID string `json:"uid"`
		} `json:"targetRef"`
		NodeName string `json:"nodeName"`
		Zone     string `json:"zone"`
		Hints    struct {
			ForZones names `json:"forZones"`
			ForNodes names `json:"forNodes"`
		} `json:"hints"`
	}
	empty := given
	return bounded(b, maxEndpoints, &given, func() {
		c := given.Conditions
		*l = append(*l, endpoint{
			rank:    rankOf(c.Ready, c.Serving, c.Terminating),
			address: given.Addresses[0], uid: given.TargetRef.UID,
			node: once(given.NodeName), zone: once(given.Zone),
			forZones: given.Hints.ForZones, forNodes: given.Hints.ForNodes,
		})
		given = empty
	})
}

// once interns text, so that equal strings share their memory.
func once(text string) string {
	if text == "" {
		return ""
	}
	return unique.Make(text).Value()
}

type port struct {
	Name        string `json:"name"`
	Port        int    `json:"port"`
	Protocol    string `json:"protocol"`
	AppProtocol string `json:"appProtocol"`
}

type ports []port

func (l *ports) UnmarshalJSON(b []byte) error {
	var given port
	return bounded(b, maxPorts, &given, func() { *l, given = append(*l, given), port{} })
}

type names []string

func (l *names) UnmarshalJSON(b []byte) error {
	var given struct {
		Name string `json:"name"`
	}
	*l = nil
	return bounded(b, maxHints, &given, func() {
		if len(*l) < maxHints {
			*l = append(*l, once(given.Name))
		}
		given.Name = ""
	})
}

// bounded decodes an array. It decodes each element into the variable at into, and then calls
// taken. It stops after most+1 elements, because an element with two bytes of JSON may need a
// hundred bytes of memory.
func bounded(b []byte, most int, into any, taken func()) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return &shapeError{fmt.Sprintf("%.20s", b)}
	}
	for n := 0; n <= most && d.More(); n++ {
		if err := d.Decode(into); err != nil {
			return err
		}
		taken()
	}
	return nil
}

// rank is the condition of an endpoint; better conditions have higher ranks.
type rank int8

const (
	gone     rank = iota // terminating, and not serving
	waiting              // not ready
	draining             // terminating, but serving
	ready
)

// rankOf returns the rank for the conditions of an endpoint. An absent condition (nil) counts as
// true for ready and serving, and as false for terminating.
func rankOf(isReady, serving, terminating *bool) rank {
	is := func(b *bool, otherwise bool) bool {
		if b == nil {
			return otherwise
		}
		return *b
	}
	ending := is(terminating, false)
	switch {
	case is(isReady, true):
		return ready
	case ending && is(serving, true):
		return draining
	case ending:
		return gone
	}
	return waiting
}
