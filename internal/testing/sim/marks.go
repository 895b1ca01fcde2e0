package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A mark names a situation that at least one simulation must get into. If none did, the checks for
// that situation would prove nothing. Each simulation counts at most once per mark.

type Marks struct {
	mu     sync.Mutex
	counts map[string]int
}

func (m *Marks) add(reached map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = make(map[string]int)
	}
	for name := range reached {
		m.counts[name]++
	}
}

func (m *Marks) Unreached() (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mark := range allMarks() {
		if m.counts[mark.name] == 0 {
			names = append(names, mark.name)
		}
	}
	return names
}

func (m *Marks) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for _, mark := range allMarks() {
		fmt.Fprintf(&b, "%6d  %-44s  %s\n", m.counts[mark.name], mark.name, mark.recordedBy)
	}
	return b.String()
}

type mark struct{ name, recordedBy string }

const (
	markHealed         = "end: everything recovers"
	markSurvivor       = "end: a permanent core"
	markStandby        = "bound: warmStandby"
	markRetention      = "bound: 15 minutes of a deactivated child"
	markKeepalive      = "bound: keepalive"
	markConnectTimeout = "bound: the timeout of a connection attempt"
	markBackoff        = "bound: the longest backoff"
	markTwoMinutes     = "bound: a backoff of 120 s"
	markShortDeadline  = "bound: the deadline of a call that was sent"
	markPatience       = "wait: Patience"
	markHush           = "wait: Hush"
	markShed           = "bound: every priority is full"
	markSecondServer   = "bound: the second management server"
)

// bounds are the marks that have code of their own. Some limits are left out because we can't reach
// them within an hour or can't observe them from outside: the longest ejection, HushOfMechanism,
// and the waits within one source.
var bounds = []mark{
	{markHealed, "conclude"},
	{markSurvivor, "judgeSurvivor"},
	{markStandby, "checkStandbys, for each standby that it looks for"},
	{markRetention, "channel.childClosed, for a child that is still configured"},
	{markKeepalive, "attemptEnded, from the call's error"},
	{markConnectTimeout, "dialBackend"},
	{markBackoff, "dialBackend, from the time since the last failure"},
	{markTwoMinutes, "dialBackend, the same where the longest backoff is 120 s"},
	{markShortDeadline, "call, from its result"},
	{markPatience, "received, from the time of the first update"},
	{markHush, "received, the same"},
	{markShed, "checkShed"},
	{markSecondServer, "watch, from its connections"},
}

// loggedMarks are the marks that a simulation reaches when the library logs a line that matches
// pattern.
var loggedMarks = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"bound: failoverTimeout", regexp.MustCompile(`failover from .*did not connect within`)},
	{"bound: lost connections", regexp.MustCompile(`failover from .*has lost its connections`)},
	{"bound: no priority can take calls", regexp.MustCompile(`no priority can take calls`)},
	{"bound: a priority takes calls again", regexp.MustCompile(`takes calls again, after`)},
	{"bound: a priority that is full", regexp.MustCompile(`of its calls: full$`)},
	{"bound: a priority that takes only probes", regexp.MustCompile(`takes only probes`)},
	{"bound: a priority that has returned", regexp.MustCompile(`takes all of its calls again$`)},
	{"bound: consecutive_failures", regexp.MustCompile(`is ejected by consecutive_failures`)},
	{"wait: LogSaysAfter", regexp.MustCompile(`no answer yet: waiting for`)},
	{"wait: missingAfter", regexp.MustCompile(`did not send .* within 15s`)},
	{"wait: quietFor", regexp.MustCompile(`received nothing for \S+ while endpoints failed`)},
	{"wait: a kept answer is used", regexp.MustCompile(`; the endpoints that were confirmed \S+ ago are used`)},
	{"wait: an answer stays in use", regexp.MustCompile(`; the previous endpoints stay in use`)},
	{"wait: back to the first management server", regexp.MustCompile(`back to management server`)},
	{"wait: a resource is rejected", regexp.MustCompile(`eds: rejected version`)},
}

func pairMark(names []string) string {
	ordered := slices.DeleteFunc(slices.Clone(faultNames), func(name string) bool { return !slices.Contains(names, name) })
	return "pair: " + strings.Join(ordered, "+")
}

func allMarks() (all []mark) {
	all = append(all, bounds...)
	for _, m := range loggedMarks {
		all = append(all, mark{m.name, "checkLogLine, from a line of the log"})
	}
	for _, pair := range pairs() {
		all = append(all, mark{"pair: " + pair, "episode, after both lasted longer than their consequences take"})
	}
	for _, kind := range []string{"below", "first", "all"} {
		all = append(all, mark{"load: " + kind, "checkLoad"})
	}
	return all
}

func (w *World) mark(name string) {
	w.marked.mu.Lock()
	defer w.marked.mu.Unlock()
	if w.marked.reached == nil {
		w.marked.reached = make(map[string]bool)
	}
	w.marked.reached[name] = true
}

type marked struct {
	mu      sync.Mutex
	reached map[string]bool
}

func (m *marked) all() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.reached)
}

func (w *World) markLine(text string) {
	for _, m := range loggedMarks {
		if m.pattern.MatchString(text) {
			w.mark(m.name)
		}
	}
}

func (w *World) markSecondServer() {
	if _, open := w.network.Dials(secondAddress); open > 0 {
		w.mark(markSecondServer)
	}
}

// markFirstUpdate must be called with the lock held.
func (w *World) markFirstUpdate() {
	if w.knownTruth != nil {
		return
	}
	const instant = 10 * time.Millisecond
	for name, wait := range map[string]time.Duration{markPatience: max(defaultFailoverTimeout, w.settings.failoverTimeout), markHush: 2 * time.Second} {
		if elapsed := time.Since(w.openedAt); elapsed >= wait && elapsed < wait+instant {
			w.mark(name)
		}
	}
}
