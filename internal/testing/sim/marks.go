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

// A mark is the name of a situation that at least one simulation must reach, because otherwise the
// checks for that situation prove nothing. Each simulation counts at most once for a mark.

// Marks counts how many simulations have reached each mark. Its methods may be called concurrently.
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
	markEjectionLimit  = "bound: max_ejection_percent"
	markSlowStart      = "bound: slowStart"
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

// bounds are the marks with code of their own. They do not include limits that an hour cannot
// reach, and limits that cannot be observed from outside: the longest ejection, HushOfMechanism and
// the waits within one source.
var bounds = []mark{
	{markHealed, "conclude"},
	{markSurvivor, "judgeSurvivor"},
	{markEjectionLimit, "checkEjections: the limit keeps a failing endpoint in"},
	{markSlowStart, "checkGrowth, after its last sample"},
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
	{"bound: failure_percentage", regexp.MustCompile(`is ejected by failure_percentage`)},
	{"bound: success_rate", regexp.MustCompile(`is ejected by success_rate`)},
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

// backendFaults are the faults that a backend can have. Each combination of two faults is a mark,
// which a simulation reaches when two backends have these faults at the same time.
var backendFaults = []struct {
	name string
	has  func(c *condition) bool
}{
	{"killed", func(c *condition) bool { return !c.up }},
	{"cut off", func(c *condition) bool { return c.link.LoseIn && c.link.LoseOut }},
	{"cut off one way", func(c *condition) bool { return c.link.LoseIn != c.link.LoseOut }},
	{"refuses", func(c *condition) bool { return c.link.Refuse }},
	{"paused", func(c *condition) bool { return c.link.Pause }},
	{"slow", func(c *condition) bool { return c.link.Rate > 0 }},
	{"NOT_SERVING", func(c *condition) bool { return c.notServing }},
	{"errors", func(c *condition) bool { return c.code != 0 }},
	{"hangs", func(c *condition) bool { return c.hang }},
}

const sourceFaultName = "source"

func togetherMark(a, b string) string { return "together: " + a + ", " + b }

// eventNames are the names of all events. allMarks does not read them from the events themselves,
// because internal/arch would then report that a test outside of a synctest bubble may sleep.
var eventNames = []string{
	"backend up", "priority up", "everything up", "resume", "source works", "backend down",
	"priority down", "reset", "half open", "go away", "blackhole", "priority blackhole",
	"one-way blackhole", "refusal", "slow", "not serving", "errors", "priority errors",
	"errors before the end", "hang", "pause", "priority pause", "pause and resume", "update",
	"update and back", "drained above", "change detection", "update at timer", "older",
	"source fails", "reopen", "refuse and reopen",
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
	for i, a := range backendFaults {
		for _, b := range backendFaults[i+1:] {
			all = append(all, mark{togetherMark(a.name, b.name), "markTogether, each second, for two endpoints of the channel"})
		}
		all = append(all, mark{togetherMark(a.name, sourceFaultName), "markTogether, each second, for an endpoint of the channel"})
	}
	for _, name := range eventNames {
		all = append(all, mark{"event: " + name, "runRandomEvent"})
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

func (w *World) markTogether() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, open := w.network.Dials(secondAddress); open > 0 {
		w.mark(markSecondServer)
	}
	if w.pair != nil {
		return
	}
	faulty := make([][]string, len(backendFaults))
	for _, address := range w.knownTruth.serving() {
		for i, s := range backendFaults {
			if s.has(w.conditions[address]) {
				faulty[i] = append(faulty[i], address)
			}
		}
	}
	for i, a := range backendFaults {
		if len(faulty[i]) == 0 {
			continue
		}
		if w.sourceFault != "" {
			w.mark(togetherMark(a.name, sourceFaultName))
		}
		for j := i + 1; j < len(backendFaults); j++ {
			if len(faulty[j]) > 0 && (len(faulty[i]) > 1 || len(faulty[j]) > 1 || faulty[i][0] != faulty[j][0]) {
				w.mark(togetherMark(a.name, backendFaults[j].name))
			}
		}
	}
}

func (w *World) markFirstUpdate() {
	// The caller holds the lock.
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
