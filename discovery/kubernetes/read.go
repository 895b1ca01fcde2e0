package kubernetes

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unique"
)

// This file parses slices and limits their size.

const (
	serviceLabel  = "kubernetes.io/service-name"
	priorityLabel = "understudy.dev/priority"
	weightLabel   = "understudy.dev/weight"

	maxEndpoints = 1000 // per slice (discovery/v1)
	maxPorts     = 100  // per slice
	maxHints     = 8    // per endpoint; zones and nodes each
	maxText      = 253  // bytes in the name of an object or a node

	maxEvent = 8 << 20 // bytes in one event, or in one slice of a list; etcd's limit is 1.5 MiB
	maxList  = 256 << 20
)

// object is an EndpointSlice (discovery.k8s.io/v1), or the status in an event of type ERROR. Note
// that we decode lists into arrays, because encoding/json skips whatever doesn't fit. With slices,
// someone could fill up our memory with elements that are just two bytes of JSON each. Names don't
// need tags, since encoding/json ignores case.
type object struct {
	Metadata struct {
		Name, ResourceVersion string
		Labels                labels
		Annotations           struct {
			Ended string `json:"k8s.io/initial-events-end"`
		}
	}
	AddressType string
	Endpoints   [maxEndpoints + 1]*struct {
		Addresses  [1]string // Kubernetes ignores the rest
		Conditions struct{ Ready, Serving, Terminating *bool }
		TargetRef  struct {
			UID string `json:"uid"`
		}
		Zone  string
		Hints struct{ ForZones, ForNodes [maxHints]hint }
	}
	Ports [maxPorts + 1]*port
	status
}

type labels struct {
	Service  string `json:"kubernetes.io/service-name"`
	Priority string `json:"understudy.dev/priority"`
	Weight   string `json:"understudy.dev/weight"`
}

type port struct {
	Name, Protocol, AppProtocol string
	Port                        int
}

type hint struct{ Name string }

// slice is what we keep of an EndpointSlice. It's immutable.
type slice struct {
	labels
	name, addressType string
	endpoints         []endpoint // one more than maxEndpoints if there are too many
	ports             []port     // one more than maxPorts if there are too many
	expiry            time.Time  // only set for deleted slices
}

// The names of zones and nodes are interned, because many endpoints share them.
type endpoint struct {
	rank
	address            string // may be ""
	uid, zone          string
	forZones, forNodes []string
}

func (o *object) slice() *slice {
	sl := &slice{labels: o.Metadata.Labels, name: o.Metadata.Name, addressType: o.AddressType}
	for _, e := range o.Endpoints {
		if e != nil {
			sl.endpoints = append(sl.endpoints, endpoint{
				rank:    rankOf(e.Conditions.Ready, e.Conditions.Serving, e.Conditions.Terminating),
				address: e.Addresses[0], uid: e.TargetRef.UID, zone: unique.Make(e.Zone).Value(),
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
			names = append(names, unique.Make(h.Name).Value())
		}
	}
	return names
}

func (s *slice) hasLongText() bool {
	texts := []string{s.name, s.addressType, s.Service, s.Priority, s.Weight}
	for _, p := range s.ports {
		texts = append(texts, p.Name, p.Protocol, p.AppProtocol)
	}
	for _, e := range s.endpoints {
		texts = append(texts, e.address, e.uid, e.zone)
		texts = append(append(texts, e.forZones...), e.forNodes...)
	}
	return slices.ContainsFunc(texts, func(text string) bool { return len(text) > maxText })
}

type rank int8 // higher is better

const (
	rankGone     rank = iota // terminating, and not serving
	rankWaiting              // not ready
	rankDraining             // terminating, but serving
	rankReady
)

func rankOf(isReady, serving, terminating *bool) rank {
	// As the API defines it, nil means true for ready and serving, but false for terminating.
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

type event struct {
	Type    string
	Object  object
	problem error // something is wrong with the object, but we can read on
	err     error // the stream has ended
}

func readEvents(ctx context.Context, body io.Reader) <-chan *event {
	ch := make(chan *event)
	go func() {
		s := newStream(body)
		for e := new(event); e.err == nil; {
			e = new(event)
			e.problem, e.err = s.next(e)
			select {
			case ch <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ch
}

// stream reads JSON values. Each may have up to maxEvent bytes, including whatever comes before it.
type stream struct {
	limited *io.LimitedReader
	*json.Decoder
}

func newStream(body io.Reader) *stream {
	limited := &io.LimitedReader{R: body, N: maxEvent}
	return &stream{limited, json.NewDecoder(limited)}
}

func (s *stream) next(value any) (problem, err error) {
	// If there's just a problem, we can go on with the next value, but not after err. Our Go types
	// would mean nothing to users, so we describe type mismatches in JSON's terms.
	err = s.Decode(value)
	isTooLong := s.limited.N <= 0
	s.limited.N = maxEvent
	typeErr, isTypeErr := errors.AsType[*json.UnmarshalTypeError](err)
	_, isSyntaxErr := errors.AsType[*json.SyntaxError](err)
	switch {
	case isTypeErr:
		field := cmp.Or(typeErr.Field[strings.LastIndex(typeErr.Field, ".")+1:], "it")
		return fmt.Errorf("it has a JSON %s for %s%s", typeErr.Value, strings.ToLower(field[:1]), field[1:]), nil
	case isSyntaxErr:
		return nil, fmt.Errorf("the API server sends invalid JSON: %w", err)
	case err == nil || !isTooLong:
		return nil, err
	}
	remaining := bufio.NewReader(s.limited.R)
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
		_, err = remaining.ReadSlice('\n')
	}
	*s = *newStream(remaining)
	return fmt.Errorf("it has more than %d MiB", maxEvent>>20), err
}

func readList(body io.Reader, handle func(sl *slice, problem error)) (version string, err error) {
	s := newStream(io.LimitReader(body, maxList))
	if t, err := s.Token(); t != json.Delim('{') {
		return "", cmp.Or(err, errors.New("it is not an object"))
	}
	for s.More() {
		name, err := s.Token()
		var problem error
		var metadata struct{ ResourceVersion string }
		switch {
		case err != nil:
		case name == "metadata":
			problem, err = s.next(&metadata)
			version = metadata.ResourceVersion
		case name == "items":
			err = s.readItems(handle)
		default:
			_, err = s.next(new(json.RawMessage))
		}
		if err = cmp.Or(problem, err); err != nil {
			return "", err
		}
	}
	if _, err := s.Token(); err != nil {
		return "", err
	}
	if version == "" {
		return "", errors.New("it has no resourceVersion")
	}
	return version, nil
}

func (s *stream) readItems(handle func(sl *slice, problem error)) error {
	switch t, err := s.Token(); {
	case t == nil:
		return err
	case t != json.Delim('['):
		return fmt.Errorf("it has a JSON %T for items", t)
	}
	for s.More() {
		o := new(object)
		problem, err := s.next(o)
		if err != nil {
			return err
		}
		handle(o.slice(), problem)
	}
	_, err := s.Token()
	return err
}
