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

// controller executes the actions of the buttons on the page.
type controller struct {
	mu         sync.Mutex
	cluster    *cluster
	lastAction string
	ended      bool
}

type action struct {
	Name, Label, pastTense string
	apply                  func(*slot) error
}

var pageActions = []action{
	{"kill", "Kill", "killed", func(s *slot) error { s.kill(); return nil }},
	{"hang", "Hang", "hung", func(s *slot) error { return s.setMode(hung) }},
	{"fail", "Errors", "made to return errors:", func(s *slot) error { return s.setMode(failing) }},
	{"restore", "Restore", "restored", func(s *slot) error { return s.setMode(serving) }},
}

func (s *slot) setMode(m mode) error {
	if err := s.start(); err != nil {
		return err
	}
	if s.process.setMode(m) == nil {
		return nil
	}
	s.kill()
	if err := s.start(); err != nil {
		return err
	}
	return s.process.setMode(m)
}

func (s *slot) state() string {
	switch {
	case !s.isRunning():
		return "killed"
	case s.process.mode == failing:
		return "errors"
	}
	return string(s.process.mode)
}

type groupKind string

const (
	kindPriority groupKind = "priority"
	kindLocality groupKind = "locality"
	kindEndpoint groupKind = "endpoint"
)

// group is a priority, a locality or an endpoint, with its backends.
type group struct {
	Rank  groupKind
	Name  string
	Title string // name of the group on the debug page
	// Weight is nil for a priority.
	Weight *uint32
	slots  []*slot
}

func (g *group) ID() string { return string(g.Rank) + " " + g.Name }

func (g *group) Place() string { return strings.ReplaceAll(g.ID(), " ", "-") }

func (g *group) State() string {
	if g.Rank != kindEndpoint {
		return ""
	}
	return g.slots[0].state()
}

func (c *cluster) groups() []*group {
	var all []*group
	var p, l *group
	for _, s := range c.slots {
		if name := strconv.Itoa(s.priority); p == nil || p.Name != name {
			p = &group{Rank: kindPriority, Name: name, Title: "p" + name}
			l = nil
			all = append(all, p)
		}
		if l == nil || l.Name != s.locality {
			if l != nil {
				p.Title += ","
			}
			p.Title += " " + s.locality
			l = &group{Rank: kindLocality, Name: s.locality, Title: s.locality, Weight: new(s.localityWeight)}
			all = append(all, l)
		}
		p.slots, l.slots = append(p.slots, s), append(l.slots, s)
		all = append(all, &group{Rank: kindEndpoint, Name: s.address, Title: s.address, Weight: new(s.weight), slots: []*slot{s}})
	}
	return all
}

var errEnded = errors.New("the demo has ended")

func (ctl *controller) lock() error {
	ctl.mu.Lock()
	if ctl.ended {
		ctl.mu.Unlock()
		return errEnded
	}
	return nil
}

// end waits for the current action and prevents later actions, because nothing would stop the
// backends that they start.
func (ctl *controller) end() {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	ctl.ended = true
}

// act applies a form's action to a group of backends, and returns the group's anchor on the page.
func (ctl *controller) act(form url.Values) (anchor string, err error) {
	if err := ctl.lock(); err != nil {
		return "", err
	}
	defer ctl.mu.Unlock()
	name, id := form.Get("do"), form.Get("to")
	v := slices.IndexFunc(pageActions, func(v action) bool { return v.Name == name })
	if v < 0 {
		return "", fmt.Errorf("do %.20q given, want kill, hang, fail or restore", name)
	}
	groups := ctl.cluster.groups()
	g := slices.IndexFunc(groups, func(g *group) bool { return g.ID() == id })
	if g < 0 {
		return "", fmt.Errorf("to %.40q given, want a priority, a locality or an endpoint of the demo", id)
	}
	for _, s := range groups[g].slots {
		if err := pageActions[v].apply(s); err != nil {
			return "", err
		}
	}
	ctl.setLastAction(pageActions[v].pastTense + " " + groups[g].Title)
	return groups[g].Place(), nil
}

const maxWeight = 1000

func (ctl *controller) setWeights(form url.Values) error {
	if err := ctl.lock(); err != nil {
		return err
	}
	defer ctl.mu.Unlock()
	weights := map[string]uint32{}
	for _, g := range ctl.cluster.groups() {
		text := strings.TrimSpace(form.Get(g.ID()))
		if g.Weight == nil || text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n < 1 || n > maxWeight {
			return fmt.Errorf("weight of %s: %.20q given, want a whole number from 1 to %d", g.Title, text, maxWeight)
		}
		weights[g.ID()] = uint32(n)
	}
	for _, g := range ctl.cluster.groups() {
		w, ok := weights[g.ID()]
		if !ok {
			continue
		}
		for _, s := range g.slots {
			s.setWeight(g.Rank, w)
		}
	}
	if err := ctl.cluster.write(); err != nil {
		return err
	}
	ctl.setLastAction("changed the weights")
	return nil
}

func (s *slot) setWeight(kind groupKind, weight uint32) {
	if kind == kindLocality {
		s.localityWeight = weight
	} else {
		s.weight = weight
	}
}

func (ctl *controller) setLastAction(text string) {
	ctl.lastAction = strings.ToUpper(text[:1]) + text[1:] + " at " + time.Now().Format(time.TimeOnly) + "."
}

// withGroups calls show with the groups and a text about the last action. No action runs during
// this call.
func (ctl *controller) withGroups(show func(groups []*group, lastAction string) error) error {
	if err := ctl.lock(); err != nil {
		return err
	}
	defer ctl.mu.Unlock()
	return show(ctl.cluster.groups(), ctl.lastAction)
}
