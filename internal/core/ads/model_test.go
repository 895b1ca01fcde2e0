package ads

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type model struct {
	watchers        map[string]int
	good            map[string]string
	running         map[Timer]bool
	isStreamOpen    bool
	answered        bool
	version         string
	responseCount   int
	responsesBefore map[Timer]int
	streamFailed    bool
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New()
		m := &model{watchers: make(map[string]int), good: make(map[string]string), running: make(map[Timer]bool), responsesBefore: make(map[Timer]int)}
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		nonces := 0
		t.Repeat(map[string]func(*rapid.T){
			"watch": func(t *rapid.T) {
				n := name.Draw(t, "name")
				_, isSubscribed := m.watchers[n]
				m.watchers[n]++
				mayArrive := rapid.Bool().Draw(t, "coming")
				a := s.Watch(n, mayArrive)
				if body, isKnown := m.good[n]; isKnown != (len(a.Deliver) == 1) || isKnown && string(a.Deliver[0].Body) != body {
					t.Fatalf("a watcher of %s received %v, want %q", n, a.Deliver, body)
				}
				if _, known := m.good[n]; !isSubscribed && !known && m.streamFailed != (len(a.Fail) == 1) {
					t.Fatalf("a new watcher of %s received %v; failing: %v", n, a.Fail, m.streamFailed)
				}
				if mayArrive && isSubscribed && m.watchers[n] == 1 && m.answered && len(a.Fail) == 1 && errors.Is(a.Fail[0].Err, ErrMissing) {
					t.Fatalf("the only watcher of %s received ErrMissing immediately", n)
				}
				if hasSent := a.Send != nil; hasSent != (m.isStreamOpen && !isSubscribed) {
					t.Fatalf("sent %+v for %v", a.Send, m.watchers)
				}
				m.check(t, a)
			},
			"unwatch": func(t *rapid.T) {
				n := name.Draw(t, "name")
				if m.watchers[n] == 0 {
					return
				}
				m.watchers[n]--
				if !m.isStreamOpen {
					m.dropUnwatched()
				}
				a := s.Unwatch(n)
				if a.Send != nil {
					t.Fatalf("sent %+v, want nothing, because it stays subscribed", a.Send)
				}
				m.check(t, a)
			},
			"open": func(t *rapid.T) {
				if m.isStreamOpen || len(m.watchers) == 0 {
					return
				}
				m.isStreamOpen, m.answered = true, false
				a := s.Opened()
				if a.Send.Nonce != "" {
					t.Fatalf("a stream began with %+v, want no nonce", a.Send)
				}
				m.check(t, a)
			},
			"close": func(t *rapid.T) {
				if !m.isStreamOpen {
					return
				}
				m.isStreamOpen = false
				m.dropUnwatched()
				reason := rapid.SampledFrom([]error{errors.New("closed"), nil}).Draw(t, "reason")
				m.streamFailed = m.streamFailed || reason != nil && !m.answered
				a := s.Closed(reason)
				if reason == nil && len(a.Fail) > 0 {
					t.Fatalf("%v failed because of a renewed stream", a.Fail)
				}
				m.check(t, a)
				if reason != nil && !m.answered && len(m.running) > 0 {
					t.Fatalf("timers running after the failure of a stream: %v", m.running)
				}
			},
			"await": func(t *rapid.T) {
				m.check(t, s.RestartTimers())
				if !m.isStreamOpen {
					return
				}
				for n := range m.watchers {
					if _, known := m.good[n]; !known && !m.hasTimer(n) {
						t.Fatalf("%s is missing and has no timer", n)
					}
				}
			},
			"response": func(t *rapid.T) {
				if !m.isStreamOpen {
					return
				}
				nonces++
				m.respond(t, s, fmt.Sprint("v", nonces), fmt.Sprint("n", nonces))
			},
			"expire": func(t *rapid.T) {
				if len(m.running) == 0 {
					return
				}
				timer := rapid.SampledFrom(slices.SortedFunc(maps.Keys(m.running), func(a, b Timer) int { return int(a.ID) - int(b.ID) })).Draw(t, "timer")
				delete(m.running, timer)
				a := s.Expired(timer)
				if watched := m.watchers[timer.Name] > 0; watched != (len(a.Fail) == 1) || watched && a.Fail[0].Name != timer.Name {
					t.Fatalf("after the timer of %s: %+v", timer.Name, a)
				}
				if silent := m.responsesBefore[timer] == m.responseCount && !timer.Short; len(a.Fail) == 1 && silent != errors.Is(a.Fail[0].Err, ErrSilent) {
					t.Fatalf("%s failed with %v; server silent: %v", timer.Name, a.Fail[0].Err, silent)
				}
				m.check(t, a)
			},
		})
	})
}

func (m *model) hasTimer(name string) bool {
	for timer := range m.running {
		if timer.Name == name {
			return true
		}
	}
	return false
}

func (m *model) dropUnwatched() {
	for n, watchers := range m.watchers {
		if watchers == 0 {
			delete(m.watchers, n)
			delete(m.good, n)
		}
	}
}

func (m *model) respond(t *rapid.T, s *Subscriptions, version, nonce string) {
	var rs []Resource
	changed := make(map[string]string)
	bad := false
	names := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "d"})).Draw(t, "names")
	for _, n := range names {
		occurrences := 0
		for _, other := range names {
			if other == n {
				occurrences++
			}
		}
		r := Resource{Name: n, Body: []byte(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "body"))}
		_, isSubscribed := m.watchers[n]
		if rapid.Bool().Draw(t, "bad") {
			r.Err = errors.New("bad")
		}
		if r.Err != nil || occurrences > 1 {
			bad = bad || isSubscribed
		} else if isSubscribed && m.good[n] != string(r.Body) {
			changed[n] = string(r.Body)
		}
		rs = append(rs, r)
	}
	if restarted := s.ServerResponds(); len(restarted.Deliver)+len(restarted.Fail) > 0 {
		t.Fatalf("before a response: %+v", restarted)
	} else {
		m.check(t, restarted)
	}
	m.answered, m.streamFailed = true, false
	m.responseCount++
	a := s.Received(version, nonce, rs)
	delivered := make(map[string]string)
	for _, d := range a.Deliver {
		delivered[d.Name] = string(d.Body)
	}
	maps.Copy(m.good, changed)
	maps.DeleteFunc(changed, func(n, _ string) bool { return m.watchers[n] == 0 })
	if !maps.Equal(delivered, changed) {
		t.Fatalf("%v: delivered %v, want %v", rs, delivered, changed)
	}
	if !bad {
		m.version = version
	}
	if len(m.watchers) > 0 && (a.Send.Nonce != nonce || (a.Send.Reject != "") != bad) {
		t.Fatalf("%v: reply %+v, want version %q", rs, a.Send, m.version)
	}
	m.check(t, a)
}

func (m *model) check(t *rapid.T, a Actions) {
	for _, timer := range a.Stop {
		if !m.running[timer] {
			t.Fatalf("stopped %v, which was not running", timer)
		}
		delete(m.running, timer)
	}
	for _, timer := range a.Start {
		for other := range m.running {
			if other.Name == timer.Name {
				t.Fatalf("started %v while %v was running", timer, other)
			}
		}
		m.running[timer], m.responsesBefore[timer] = true, m.responseCount
	}
	for timer := range m.running {
		if _, known := m.good[timer.Name]; known || m.watchers[timer.Name] == 0 && !m.isStreamOpen {
			t.Fatalf("%v is running without need", timer)
		}
	}
	for _, f := range a.Fail {
		if _, known := m.good[f.Name]; known || m.watchers[f.Name] == 0 {
			t.Fatalf("unexpected failure of %s", f.Name)
		}
	}
	if a.Send != nil && (!m.isStreamOpen || !slices.Equal(a.Send.Names, slices.Sorted(maps.Keys(m.watchers)))) {
		t.Fatalf("sent %+v for %v", a.Send, m.watchers)
	}
	version := m.version
	if !m.answered {
		version = "" // a stream has no version before its first response
	}
	if a.Send != nil && a.Send.Version != version {
		t.Fatalf("sent version %q, want %q", a.Send.Version, version)
	}
}
