package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/connectivity"
)

// A mark is a situation that some simulation must reach. Otherwise the checks for that situation
// prove nothing. Each simulation counts at most once for a mark.

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
		fmt.Fprintf(&b, "%6d  %-44s  %s\n", m.counts[mark.name], mark.name, mark.where)
	}
	return b.String()
}

type mark struct{ name, where string }

const (
	markHealed       = "end: everything recovers"
	markCore         = "end: a permanent core"
	markFailback     = "bound: failbackDelay"
	markLongest      = "bound: maxFailbackDelay"
	markJitter       = "bound: failbackJitter"
	markSmall        = "bound: between minReady and minReadyRecovery"
	markFull         = "bound: max_ejection_percent"
	markSlowStart    = "bound: slowStart"
	markStandby      = "bound: warmStandby"
	markRetention    = "bound: 15 minutes of a deactivated child"
	markKeepalive    = "bound: keepalive"
	markAttempt      = "bound: the timeout of a connection attempt"
	markBackoff      = "bound: the longest backoff"
	markTwoMinutes   = "bound: a backoff of 120 s"
	markShort        = "bound: the deadline of a call that was sent"
	markPatience     = "wait: Patience"
	markHush         = "wait: Hush"
	markSecondServer = "bound: the second management server"
)

// bounds are the marks that are listed by hand. It leaves out bounds that an hour cannot reach, and
// bounds that cannot be seen from outside: the longest ejection, HushOfPart and the waits within
// one source.
var bounds = []mark{
	{markHealed, "conclude"},
	{markCore, "judgeCore"},
	{markFailback, "channel.failover, up to a child that has been READY for the delay"},
	{markLongest, "channel.failover, the same with the longest delay"},
	{markJitter, "channel.failover, later than the longest delay"},
	{markSmall, "channel.check, from the child's report"},
	{markFull, "checkEjections: the limit keeps a failing endpoint in"},
	{markSlowStart, "checkGrowth, after its last sample"},
	{markStandby, "checkStandbys, for each standby that it looks for"},
	{markRetention, "channel.closed, for a child that is still configured"},
	{markKeepalive, "attemptEnded, from the call's error"},
	{markAttempt, "dialBackend"},
	{markBackoff, "dialBackend, from the time since the last failure"},
	{markTwoMinutes, "dialBackend, the same where the longest backoff is 120 s"},
	{markShort, "call, from its result"},
	{markPatience, "received, from the time of the first update"},
	{markHush, "received, the same"},
	{markSecondServer, "watch, from its connections"},
}

// loggedMarks are reached when the product logs a line that matches form.
var loggedMarks = []struct {
	name string
	form *regexp.Regexp
}{
	{"bound: failoverTimeout", regexp.MustCompile(`failover from .*did not connect within`)},
	{"bound: fastFailover", regexp.MustCompile(`failover from .*has lost its connections`)},
	{"bound: minReady", regexp.MustCompile(`failover from .*of its weight is READY`)},
	{"bound: no priority can take calls", regexp.MustCompile(`no priority can take calls`)},
	{"bound: a priority takes calls again", regexp.MustCompile(`takes calls again, after`)},
	{"bound: an emptied priority", regexp.MustCompile(`calls to all of its endpoints fail`)},
	{"bound: a half-open priority", regexp.MustCompile(`a few calls show whether`)},
	{"bound: a priority that is no longer emptied", regexp.MustCompile(`not all of its endpoints are ejected any more`)},
	{"bound: consecutive_failures", regexp.MustCompile(`is ejected by consecutive_failures`)},
	{"bound: failure_percentage", regexp.MustCompile(`is ejected by failure_percentage`)},
	{"bound: success_rate", regexp.MustCompile(`is ejected by success_rate`)},
	{"wait: LogSaysAfter", regexp.MustCompile(`no answer yet: waiting for`)},
	{"wait: missingAfter", regexp.MustCompile(`did not send .* within 15s`)},
	{"wait: quietFor", regexp.MustCompile(`brought nothing for \S+ while endpoints failed`)},
	{"wait: a kept answer is used", regexp.MustCompile(`; the endpoints that were confirmed \S+ ago are used`)},
	{"wait: an answer stays in use", regexp.MustCompile(`; the endpoints from before stay in use`)},
	{"wait: back to the first management server", regexp.MustCompile(`back to management server`)},
	{"wait: a resource is rejected", regexp.MustCompile(`eds: rejected version`)},
}

func rowMark(row int) string { return fmt.Sprintf("row %d of the order of last resorts", row) }

func pairMark(names []string) string {
	in := slices.DeleteFunc(slices.Clone(faultNames), func(name string) bool { return !slices.Contains(names, name) })
	return "pair: " + strings.Join(in, "+")
}

// sights has the faults that a backend can have. Each two of them are a mark, which a simulation
// reaches when two backends have them at the same time.
var sights = []struct {
	name string
	is   func(c *condition) bool
}{
	{"killed", func(c *condition) bool { return !c.up }},
	{"cut off", func(c *condition) bool { return c.link.LoseIn && c.link.LoseOut }},
	{"cut off one way", func(c *condition) bool { return c.link.LoseIn != c.link.LoseOut }},
	{"refuses", func(c *condition) bool { return c.link.Refuse }},
	{"paused", func(c *condition) bool { return c.link.Pause }},
	{"slow", func(c *condition) bool { return c.link.Rate > 0 }},
	{"NOT_SERVING", func(c *condition) bool { return c.sick }},
	{"errors", func(c *condition) bool { return c.answer != 0 }},
	{"hangs", func(c *condition) bool { return c.hang }},
}

const sourceSight = "source"

func sightMark(a, b string) string { return "together: " + a + ", " + b }

// eventNames repeats the names of all events. A test that used the events themselves would count as
// a test that sleeps, because they wait.
var eventNames = []string{
	"backend up", "priority up", "everything up", "resume", "source works", "backend down",
	"priority down", "reset", "half open", "go away", "blackhole", "priority blackhole",
	"one-way blackhole", "refusal", "slow", "not serving", "errors", "priority errors",
	"errors before the end", "hang", "pause", "priority pause", "pause and resume", "update",
	"update and back", "drained above", "change detection", "update at timer", "older",
	"source fails", "reopen", "refuse and reopen",
}

func allMarks() (all []mark) {
	for row := 1; row <= 7; row++ {
		all = append(all, mark{rowMark(row), "A56's model, in worlds in which the policy is compared with it"})
	}
	all = append(all, bounds...)
	for _, m := range loggedMarks {
		all = append(all, mark{m.name, "said, from a line of the log"})
	}
	for _, pair := range pairs() {
		all = append(all, mark{"pair: " + pair, "episode, after both lasted longer than their consequences take"})
	}
	for i, a := range sights {
		for _, b := range sights[i+1:] {
			all = append(all, mark{sightMark(a.name, b.name), "lookAround, each second, for two endpoints of the channel"})
		}
		all = append(all, mark{sightMark(a.name, sourceSight), "lookAround, each second, for an endpoint of the channel"})
	}
	for _, name := range eventNames {
		all = append(all, mark{"event: " + name, "next"})
	}
	return all
}

// mark records that this world has reached a mark.
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

// markLine records the marks that a log line shows.
func (w *World) markLine(text string) {
	for _, m := range loggedMarks {
		if m.form.MatchString(text) {
			w.mark(m.name)
		}
	}
}

// lookAround records which faults exist at the same time.
func (w *World) lookAround() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, open := w.network.Dials(secondAddress); open > 0 {
		w.mark(markSecondServer)
	}
	if w.pair != nil {
		return
	}
	seen := make([][]string, len(sights))
	for _, address := range w.known.serving() {
		for i, s := range sights {
			if s.is(w.conditions[address]) {
				seen[i] = append(seen[i], address)
			}
		}
	}
	for i, a := range sights {
		if len(seen[i]) == 0 {
			continue
		}
		if w.faulty != "" {
			w.mark(sightMark(a.name, sourceSight))
		}
		for j := i + 1; j < len(sights); j++ {
			if len(seen[j]) > 0 && (len(seen[i]) > 1 || len(seen[j]) > 1 || seen[i][0] != seen[j][0]) {
				w.mark(sightMark(a.name, sights[j].name))
			}
		}
	}
}

// markBack records what a failback shows. The caller holds the lock.
func (c *channel) markBack(entered *seen) {
	s := c.w.settings
	if entered == nil || entered.state != connectivity.Ready || s.failback == 0 {
		return
	}
	held := time.Since(entered.since)
	if held >= s.failback {
		c.w.mark(markFailback)
	}
	if s.longestFailback > s.failback && held >= s.longestFailback {
		c.w.mark(markLongest)
	}
	if s.jitter > 0 && held > s.longestFailback {
		c.w.mark(markJitter)
	}
}

// markParts records priorities whose READY share is between minReady and minReadyRecovery. The
// caller holds the lock.
func (c *channel) markParts() {
	s := c.w.settings
	for _, child := range c.children {
		if s.minReady > 0 && child.state == connectivity.Ready && child.tier.ReadyPart >= s.minReady && child.tier.ReadyPart < s.recovery {
			c.w.mark(markSmall)
		}
	}
}

// markFirst records how a channel got its first update. The caller holds the lock.
func (w *World) markFirst() {
	if w.known != nil {
		return
	}
	const instant = 10 * time.Millisecond
	for name, wait := range map[string]time.Duration{markPatience: w.settings.failover, markHush: 2 * time.Second} {
		if took := time.Since(w.openedAt); took >= wait && took < wait+instant {
			w.mark(name)
		}
	}
}
