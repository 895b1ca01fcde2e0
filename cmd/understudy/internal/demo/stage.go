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

// stage carries out the actions of the buttons on the page.
type stage struct {
	mu      sync.Mutex
	cluster *cluster
	said    string
	ended   bool
}

type verb struct {
	Name, Label, past string
	do                func(*spot) error
}

var verbs = []verb{
	{"kill", "Kill", "killed", func(s *spot) error { s.kill(); return nil }},
	{"hang", "Hang", "hung", func(s *spot) error { return s.become(hung) }},
	{"fail", "Errors", "made to answer errors:", func(s *spot) error { return s.become(failing) }},
	{"restore", "Restore", "restored", func(s *spot) error { return s.become(serving) }},
}

func (s *spot) become(m mode) error {
	if err := s.start(); err != nil {
		return err
	}
	if s.process.become(m) == nil {
		return nil
	}
	s.kill()
	if err := s.start(); err != nil {
		return err
	}
	return s.process.become(m)
}

func (s *spot) state() string {
	switch {
	case !s.alive():
		return "killed"
	case s.process.mode == failing:
		return "errors"
	}
	return string(s.process.mode)
}

type rank string

const (
	ofPriority rank = "priority"
	ofLocality rank = "locality"
	ofEndpoint rank = "endpoint"
)

// group is a priority, a locality or an endpoint, with its backends.
type group struct {
	Rank  rank
	Name  string
	Title string // its name on the debug page
	// Weight is nil for a priority.
	Weight *uint32
	spots  []*spot
}

func (g *group) ID() string { return string(g.Rank) + " " + g.Name }

func (g *group) Place() string { return strings.ReplaceAll(g.ID(), " ", "-") }

func (g *group) State() string {
	if g.Rank != ofEndpoint {
		return ""
	}
	return g.spots[0].state()
}

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

func (st *stage) enter() error {
	st.mu.Lock()
	if st.ended {
		st.mu.Unlock()
		return errEnded
	}
	return nil
}

// end waits for the current action and prevents later ones, because nothing would stop the backends
// that they start.
func (st *stage) end() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.ended = true
}

// act applies a form's action to a group of backends, and returns the group's anchor on the page.
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

const mostWeight = 1000

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

// look calls show with the groups and a text about the last action. During the call, no action
// runs.
func (st *stage) look(show func(groups []*group, said string) error) error {
	if err := st.enter(); err != nil {
		return err
	}
	defer st.mu.Unlock()
	return show(st.cluster.groups(), st.said)
}
