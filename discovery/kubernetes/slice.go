package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unique"
)

// This file parses responses of the API server and limits their size. The code accesses neither the
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
	Endpoints   endpoints `json:"endpoints"` // truncated to maxEndpoints+1
	Ports       ports     `json:"ports"`     // truncated to maxPorts+1
}

// hasLongText reports whether a string in the slice is longer than the API allows.
func (s *slice) hasLongText() bool {
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
	var labelValues map[string]string
	err := json.Unmarshal(b, &labelValues)
	for _, name := range []string{serviceLabel, priorityLabel, weightLabel} {
		if value, isSet := labelValues[name]; isSet {
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
	address            string // first address, or ""; Kubernetes ignores further addresses
	uid, node, zone    string
	forZones, forNodes []string
}

type endpoints []endpoint

func (l *endpoints) UnmarshalJSON(b []byte) error {
	var decoded struct {
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
	empty := decoded
	return decodeArray(b, maxEndpoints, &decoded, func() {
		c := decoded.Conditions
		*l = append(*l, endpoint{
			rank:    rankOf(c.Ready, c.Serving, c.Terminating),
			address: decoded.Addresses[0], uid: decoded.TargetRef.UID,
			node: intern(decoded.NodeName), zone: intern(decoded.Zone),
			forZones: decoded.Hints.ForZones, forNodes: decoded.Hints.ForNodes,
		})
		decoded = empty
	})
}

// intern returns a copy of text that shares its memory with equal strings.
func intern(text string) string {
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
	var decoded port
	return decodeArray(b, maxPorts, &decoded, func() { *l, decoded = append(*l, decoded), port{} })
}

type names []string

func (l *names) UnmarshalJSON(b []byte) error {
	var decoded struct {
		Name string `json:"name"`
	}
	*l = nil
	return decodeArray(b, maxHints, &decoded, func() {
		if len(*l) < maxHints {
			*l = append(*l, intern(decoded.Name))
		}
		decoded.Name = ""
	})
}

// decodeArray decodes an array. It decodes each element into the variable at element, and then
// calls appendElement. It stops after limit+1 elements, because an element with two bytes of JSON
// may need a hundred bytes of memory.
func decodeArray(b []byte, limit int, element any, appendElement func()) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return &notArrayError{fmt.Sprintf("%.20s", b)}
	}
	for n := 0; n <= limit && d.More(); n++ {
		if err := d.Decode(element); err != nil {
			return err
		}
		appendElement()
	}
	return nil
}

// rank is the condition of an endpoint. Better conditions have higher ranks.
type rank int8

const (
	rankGone     rank = iota // terminating, and not serving
	rankWaiting              // not ready
	rankDraining             // terminating, but serving
	rankReady
)

// rankOf returns the rank for the conditions of an endpoint. An absent condition (nil) counts as
// true for ready and serving, and as false for terminating.
func rankOf(isReady, serving, terminating *bool) rank {
	valueOr := func(b *bool, fallback bool) bool {
		if b == nil {
			return fallback
		}
		return *b
	}
	isTerminating := valueOr(terminating, false)
	switch {
	case valueOr(isReady, true):
		return rankReady
	case isTerminating && valueOr(serving, true):
		return rankDraining
	case isTerminating:
		return rankGone
	}
	return rankWaiting
}
