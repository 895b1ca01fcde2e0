package demo

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stage is the cluster under the hands of whoever looks at the page.
type stage struct {
	mu      sync.Mutex
	cluster *cluster
	said    string // what was done last, and when
	ended   bool
}

// verb is something that can be done to backends.
type verb struct {
	Name, Label, past string
	do                func(*spot) error
}

// verbs are what the page has a button for.
var verbs = []verb{
	{"kill", "Kill", "killed", func(s *spot) error { s.kill(); return nil }},
	{"hang", "Hang", "hung", func(s *spot) error { return s.become(hung) }},
	{"fail", "Errors", "made to answer errors:", func(s *spot) error { return s.become(failing) }},
	{"restore", "Restore", "restored", func(s *spot) error { return s.become(serving) }},
}

// become starts the spot's backend if it is dead, and tells it its mode.
func (s *spot) become(m mode) error {
	if err := s.start(); err != nil {
		return err
	}
	if s.process.become(m) == nil {
		return nil
	}
	s.kill() // it died without us
	if err := s.start(); err != nil {
		return err
	}
	return s.process.become(m)
}

// state says what the spot's backend does.
func (s *spot) state() string {
	switch {
	case !s.alive():
		return "killed"
	case s.process.mode == failing:
		return "errors"
	}
	return string(s.process.mode)
}

// rank is how deep a group lies in the cluster.
type rank string

const (
	ofPriority rank = "priority"
	ofLocality rank = "locality"
	ofEndpoint rank = "endpoint"
)

// group is a priority, a locality or an endpoint, with the backends in it.
type group struct {
	Rank  rank
	Name  string
	Title string // what the debug page calls it
	// Weight is nil for a priority, which has none.
	Weight *uint32
	spots  []*spot
}

// ID names the group in a form.
func (g *group) ID() string { return string(g.Rank) + " " + g.Name }

// Place is the group's place on the page.
func (g *group) Place() string { return strings.ReplaceAll(g.ID(), " ", "-") }

// State is what an endpoint does, "" for other groups.
func (g *group) State() string {
	if g.Rank != ofEndpoint {
		return ""
	}
	return g.spots[0].state()
}

// groups returns all of them, each before those that lie in it.
func (c *cluster) groups() []*group {
	var all []*group
	var p, l *group
	for _, s := range c.spots {
		if name := strconv.Itoa(s.priority); p == nil || p.Name != name {
			p = &group{Rank: ofPriority, Name: name, Title: "p" + name}
			l = nil
			all = append(all, p)
		}
		if l == nil || l.Name != s.locality {
			if l != nil {
				p.Title += ","
			}
			p.Title += " " + s.locality
			l = &group{Rank: ofLocality, Name: s.locality, Title: s.locality, Weight: new(s.localityWeight)}
			all = append(all, l)
		}
		p.spots, l.spots = append(p.spots, s), append(l.spots, s)
		all = append(all, &group{Rank: ofEndpoint, Name: s.address, Title: s.address, Weight: new(s.weight), spots: []*spot{s}})
	}
	return all
}

var errEnded = errors.New("the demo has ended")

// enter takes the lock, unless the stage has ended.
func (st *stage) enter() error {
	st.mu.Lock()
	if st.ended {
		st.mu.Unlock()
		return errEnded
	}
	return nil
}

// end waits for what is being done, and has nothing done later: a request that comes as the
// demo ends would start a backend that nobody stops.
func (st *stage) end() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.ended = true
}

// act does what a form asks for to the backends of a group, and returns its place.
func (st *stage) act(form url.Values) (place string, err error) {
	if err := st.enter(); err != nil {
		return "", err
	}
	defer st.mu.Unlock()
	what, to := form.Get("do"), form.Get("to")
	v := slices.IndexFunc(verbs, func(v verb) bool { return v.Name == what })
	if v < 0 {
		return "", fmt.Errorf("do %.20q given, want kill, hang, fail or restore", what)
	}
	groups := st.cluster.groups()
	g := slices.IndexFunc(groups, func(g *group) bool { return g.ID() == to })
	if g < 0 {
		return "", fmt.Errorf("to %.40q given, want a priority, a locality or an endpoint of the demo", to)
	}
	for _, s := range groups[g].spots {
		if err := verbs[v].do(s); err != nil {
			return "", err
		}
	}
	st.say(verbs[v].past + " " + groups[g].Title)
	return groups[g].Place(), nil
}

// mostWeight bounds the weights that a form may set.
const mostWeight = 1000

// setWeights gives the localities and endpoints the weights of a form, all or none.
func (st *stage) setWeights(form url.Values) error {
	if err := st.enter(); err != nil {
		return err
	}
	defer st.mu.Unlock()
	weights := map[string]uint32{}
	for _, g := range st.cluster.groups() {
		text := strings.TrimSpace(form.Get(g.ID()))
		if g.Weight == nil || text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n < 1 || n > mostWeight {
			return fmt.Errorf("weight of %s: %.20q given, want a whole number from 1 to %d", g.Title, text, mostWeight)
		}
		weights[g.ID()] = uint32(n)
	}
	for _, g := range st.cluster.groups() {
		w, given := weights[g.ID()]
		if !given {
			continue
		}
		for _, s := range g.spots {
			s.weigh(g.Rank, w)
		}
	}
	if err := st.cluster.write(); err != nil {
		return err
	}
	st.say("changed the weights")
	return nil
}

func (s *spot) weigh(of rank, weight uint32) {
	if of == ofLocality {
		s.localityWeight = weight
	} else {
		s.weight = weight
	}
}

func (st *stage) say(what string) {
	st.said = strings.ToUpper(what[:1]) + what[1:] + " at " + time.Now().Format(time.TimeOnly) + "."
}

// look calls show with the groups and what was said last, while nothing changes.
func (st *stage) look(show func(groups []*group, said string) error) error {
	if err := st.enter(); err != nil {
		return err
	}
	defer st.mu.Unlock()
	return show(st.cluster.groups(), st.said)
}
