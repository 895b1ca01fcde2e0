package kubernetes

import (
	"slices"
	"time"
	"unique"
)

// This file parses slices and limits their size. The code accesses neither the network nor the
// clock.

const (
	serviceLabel  = "kubernetes.io/service-name"
	priorityLabel = "understudy.dev/priority"
	weightLabel   = "understudy.dev/weight"

	maxEndpoints = 1000 // maximum in a slice (discovery/v1)
	maxPorts     = 100  // maximum in a slice
	maxHints     = 8    // maximum for an endpoint, separately for zones and nodes
	maxText      = 253  // bytes of the name of an object or a node
)

// object is an EndpointSlice (discovery.k8s.io/v1), or the status in an event of type ERROR. We
// decode lists into arrays, because encoding/json skips what exceeds an array: otherwise, elements
// with two bytes of JSON could fill the memory.
type object struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
		Labels          labels `json:"labels"`
		Annotations     struct {
			Ended string `json:"k8s.io/initial-events-end"`
		} `json:"annotations"`
	} `json:"metadata"`
	AddressType string `json:"addressType"`
	Endpoints   [maxEndpoints + 1]*struct {
		Addresses  [1]string `json:"addresses"` // Kubernetes ignores further addresses
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
			ForZones [maxHints]hint `json:"forZones"`
			ForNodes [maxHints]hint `json:"forNodes"`
		} `json:"hints"`
	} `json:"endpoints"`
	Ports [maxPorts + 1]*port `json:"ports"`
	status
}

type labels struct {
	Service  string `json:"kubernetes.io/service-name"`
	Priority string `json:"understudy.dev/priority"`
	Weight   string `json:"understudy.dev/weight"`
}

type port struct {
	Name        string `json:"name"`
	Port        int    `json:"port"`
	Protocol    string `json:"protocol"`
	AppProtocol string `json:"appProtocol"`
}

type hint struct {
	Name string `json:"name"`
}

// slice holds what is kept of an EndpointSlice. It is immutable.
type slice struct {
	labels
	name, addressType string
	endpoints         []endpoint // one more than maxEndpoints if there are too many
	ports             []port     // one more than maxPorts if there are too many
	expiry            time.Time  // of a deleted slice
}

// endpoint holds what is kept of an endpoint. Names of zones and nodes are interned, because many
// endpoints share them.
type endpoint struct {
	rank
	address            string // may be ""
	uid, node, zone    string
	forZones, forNodes []string
}

func (o *object) slice() *slice {
	sl := &slice{labels: o.Metadata.Labels, name: o.Metadata.Name, addressType: o.AddressType}
	for _, e := range o.Endpoints {
		if e != nil {
			sl.endpoints = append(sl.endpoints, endpoint{
				rank:    rankOf(e.Conditions.Ready, e.Conditions.Serving, e.Conditions.Terminating),
				address: e.Addresses[0], uid: e.TargetRef.UID, node: intern(e.NodeName), zone: intern(e.Zone),
				forZones: namesOf(e.Hints.ForZones), forNodes: namesOf(e.Hints.ForNodes),
			})
		}
	}
	for _, p := range o.Ports {
		if p != nil {
			sl.ports = append(sl.ports, *p)
		}
	}
	return sl
}

func namesOf(hints [maxHints]hint) (names []string) {
	for _, h := range hints {
		if h.Name != "" {
			names = append(names, intern(h.Name))
		}
	}
	return names
}

// intern returns a copy of text that shares its memory with equal strings.
func intern(text string) string {
	if text == "" {
		return ""
	}
	return unique.Make(text).Value()
}

// hasLongText reports whether a string in the slice is longer than the API allows.
func (s *slice) hasLongText() bool {
	texts := []string{s.name, s.addressType, s.Service, s.Priority, s.Weight}
	for _, p := range s.ports {
		texts = append(texts, p.Name, p.Protocol, p.AppProtocol)
	}
	for _, e := range s.endpoints {
		texts = append(texts, e.address, e.uid, e.node, e.zone)
		texts = append(append(texts, e.forZones...), e.forNodes...)
	}
	return slices.ContainsFunc(texts, func(text string) bool { return len(text) > maxText })
}

// until returns a copy of the slice that expires at the given time.
func (s *slice) until(expiry time.Time) *slice {
	copied := *s
	copied.expiry = expiry
	return &copied
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
	switch {
	case isReady == nil || *isReady:
		return rankReady
	case terminating == nil || !*terminating:
		return rankWaiting
	case serving == nil || *serving:
		return rankDraining
	}
	return rankGone
}
