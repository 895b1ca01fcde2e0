package ads

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is the obvious version of a client: sets, and no phases.
type model struct {
	watchers map[string]int
	good     map[string]string // the last good body
	running  map[Timer]bool
	streams  bool
	version  string
}

// TestAgainstModel drives a client with random events and checks what must hold
// after each: what it says, what it has, which timers run.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New()
		m := &model{watchers: make(map[string]int), good: make(map[string]string), running: make(map[Timer]bool)}
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		nonces := 0
		t.Repeat(map[string]func(*rapid.T){
			"watch": func(t *rapid.T) {
				n := name.Draw(t, "name")
				m.watchers[n]++
				a := s.Watch(n)
				if body, known := m.good[n]; known != (len(a.Deliver) == 1) || known && string(a.Deliver[0].Body) != body {
					t.Fatalf("a watcher of %s is given %v, want %q", n, a.Deliver, body)
				}
				m.check(t, a)
			},
			"unwatch": func(t *rapid.T) {
				n := name.Draw(t, "name")
				if m.watchers[n] == 0 {
					return
				}
				if m.watchers[n]--; m.watchers[n] == 0 {
					delete(m.watchers, n)
					delete(m.good, n)
				}
				m.check(t, s.Unwatch(n))
			},
			"open": func(t *rapid.T) {
				if m.streams || len(m.watchers) == 0 {
					return
				}
				m.streams = true
				a := s.Opened()
				if a.Send.Nonce != "" || a.Send.Version != m.version {
					t.Fatalf("a stream begins with %+v, want no nonce and version %q", a.Send, m.version)
				}
				m.check(t, a)
			},
			"close": func(t *rapid.T) {
				if !m.streams {
					return
				}
				m.streams = false
				m.check(t, s.Closed(errors.New("closed")))
				if len(m.running) > 0 {
					t.Fatalf("timers run without a stream: %v", m.running)
				}
			},
			"response": func(t *rapid.T) {
				if !m.streams {
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
				if len(a.Fail) != 1 || a.Fail[0].Name != timer.Name {
					t.Fatalf("a timer of %s that ran fires: %+v", timer.Name, a)
				}
				m.check(t, a)
			},
		})
	})
}

// respond sends one random resource for each of some names.
func (m *model) respond(t *rapid.T, s *Subscriptions, version, nonce string) {
	var rs []Resource
	news := make(map[string]string)
	bad := false
	for _, n := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID).Draw(t, "names") {
		r := Resource{Name: n, Body: []byte(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "body"))}
		_, wanted := m.watchers[n]
		if rapid.Bool().Draw(t, "bad") {
			r.Err = errors.New("bad")
			bad = bad || wanted
		} else if wanted && m.good[n] != string(r.Body) {
			news[n] = string(r.Body)
		}
		rs = append(rs, r)
	}
	a := s.Received(version, nonce, rs)
	delivered := make(map[string]string)
	for _, d := range a.Deliver {
		delivered[d.Name] = string(d.Body)
	}
	if !maps.Equal(delivered, news) {
		t.Fatalf("of %v were delivered %v, want %v", rs, delivered, news)
	}
	maps.Copy(m.good, news)
	if !bad {
		m.version = version
	}
	if len(m.watchers) > 0 && (a.Send.Nonce != nonce || a.Send.Version != m.version || (a.Send.Reject != "") != bad) {
		t.Fatalf("%v is answered by %+v, want version %q", rs, a.Send, m.version)
	}
	m.check(t, a)
}

// check looks at what every event may lead to.
func (m *model) check(t *rapid.T, a Actions) {
	for _, timer := range a.Stop {
		if !m.running[timer] {
			t.Fatalf("stops %v, which does not run", timer)
		}
		delete(m.running, timer)
	}
	for _, timer := range a.Start {
		for other := range m.running {
			if other.Name == timer.Name {
				t.Fatalf("starts %v beside %v", timer, other)
			}
		}
		m.running[timer] = true
	}
	for timer := range m.running {
		if _, known := m.good[timer.Name]; known || m.watchers[timer.Name] == 0 || !m.streams {
			t.Fatalf("%v runs for nothing", timer)
		}
	}
	for _, f := range a.Fail {
		if _, known := m.good[f.Name]; known || m.watchers[f.Name] == 0 {
			t.Fatalf("%s is said to fail", f.Name)
		}
	}
	if a.Send != nil && (!m.streams || !slices.Equal(a.Send.Names, slices.Sorted(maps.Keys(m.watchers)))) {
		t.Fatalf("sends %+v for %v", a.Send, m.watchers)
	}
}
