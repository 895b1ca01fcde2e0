package torture

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The processes have different addresses. The backends have different hosts but the same port.
const (
	hostOfSources = "127.2.0.1"
	backendPort   = 24443
)

func sourceAddress(name string) string {
	return fmt.Sprintf("%s:%d", hostOfSources, 24000+slices.Index(sourceNames, name))
}

type world struct {
	schedule  schedule
	log       *eventLog
	judge     *judge
	dir       string
	client    *process
	processes map[string]*process // backends by host; sources and the client by name
	published content
	before    content // published before the current content
	away      map[string]bool
	changes   int
	counts    map[string]int
	skipped   map[string]int
	sandbox   sandbox
	files     *files
}

var channelCount = 2 * len(targets)

// target is the target of some channels. sees returns the part of the published endpoints that its
// source reports.
type target struct {
	name string
	url  string
	sees func(content) content
}

func asPublished(c content) content { return c }

var targets = []target{
	{"list", "failover:///dns://DNS/t0.test:PORT,SECOND:PORT,dns://DNS/t2.test:PORT?refresh=5s", func(c content) content {
		return content{c[0], c[1][:1], c[2]}
	}},
	{"dns", "failover:///dns://DNS/all.test:PORT?refresh=5s", func(c content) content { return content{c.all()} }},
	{"srv", "srv://DNS/" + clusterName + ".test?refresh=5s", asPublished},
	{"file", "file://DIR/files/" + clusterName + ".yaml", asPublished},
	{"serve", "eds://SERVE1,SERVE2/" + clusterName, asPublished},
	{"ads", "eds://ADS/" + clusterName, asPublished},
	{"kubernetes", "failover:///kubernetes:///t0.ns:grpc,kubernetes:///t1.ns:grpc,kubernetes:///t2.ns:grpc", asPublished},
}

func (w *world) target(t target) string {
	url := strings.NewReplacer("DNS", sourceAddress("dns"), "PORT", fmt.Sprint(backendPort), "SECOND", host(1, 0), "DIR", w.dir,
		"SERVE1", sourceAddress("serve1"), "SERVE2", sourceAddress("serve2"), "ADS", sourceAddress("ads")).Replace(t.url)
	if w.schedule.failover == defaultFailover {
		return url
	}
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + "failoverTimeout=" + w.schedule.failover.String()
}

func newWorld(seed uint64, dir string, box sandbox) (*world, error) {
	s := draw(seed, *faultsFor, *onlyFault)
	log := newLog()
	log.event("seed %d: %v", seed, s)
	w := &world{
		schedule: s, log: log, dir: dir, sandbox: box,
		processes: make(map[string]*process), away: make(map[string]bool), counts: make(map[string]int), skipped: make(map[string]int),
		judge: &judge{log: log, core: s.core, failover: s.failover, troubles: make(map[string][]*trouble)},
	}
	w.files = &files{dir: dir, port: backendPort, disk: box.disk}
	if err := w.files.prepare(s.starting); err != nil {
		return nil, err
	}
	w.published, w.before = s.starting, s.starting
	w.judge.publish(s.starting)
	for _, h := range backends.all() {
		w.processes[h] = &process{name: h, role: "backend", config: backendConfig{withPort(backendPort, h)[0]}}
	}
	for _, name := range sourceNames {
		config := &sourceConfig{Address: sourceAddress(name), Port: backendPort, Content: s.starting, Version: 10_000}
		p := &process{name: name, role: strings.TrimRight(name, "12"), config: config}
		if p.role == "serve" {
			config.Args = []string{filepath.Join(dir, "served"), "--cache", filepath.Join(dir, "disk", name)}
		}
		w.processes[name] = p
	}
	config := clientConfig{APIServer: "http://" + sourceAddress("api"), Seed: seed}
	for _, t := range targets {
		for _, recommended := range []bool{false, true} {
			retries := s.retries[len(config.Channels)]
			config.Channels = append(config.Channels, channelConfig{w.target(t), recommended, retries})
			name := t.name + map[bool]string{false: " with the zero value", true: " with Recommended"}[recommended]
			w.judge.channels = append(w.judge.channels, &channelState{name: name, recommended: recommended, sees: t.sees})
		}
	}
	w.client = &process{name: "client", role: "client", config: config}
	w.processes["client"] = w.client
	return w, w.startAll()
}

func (w *world) startAll() error {
	if err := os.MkdirAll(filepath.Join(w.dir, "races"), 0o700); err != nil {
		return err
	}
	started := make(chan error)
	for _, p := range w.processes {
		p.log, p.hear, p.dir = w.log, w.hear, filepath.Join(w.dir, "races")
		go func() { started <- p.start() }()
	}
	var all error
	for range w.processes {
		all = errors.Join(all, <-started)
	}
	return all
}

func (w *world) hear(name, line string) {
	var r record
	err := json.Unmarshal([]byte(line), &r)
	if r.Kind == pulse && w.processes[name].wasStopped(r) {
		r.Delay = 0
	}
	switch {
	case err != nil:
		w.log.repeat(name + " prints: " + line)
	case name == "client":
		w.judge.heard(r)
	default:
		w.judge.slow(r)
	}
}

func (w *world) killAll() {
	for _, p := range w.processes {
		if p.cmd != nil && p.cmd.Process != nil {
			select {
			case <-p.ended:
			default:
				p.kill()
			}
		}
	}
}

// live runs the schedule: it opens the channels, carries out the faults, and waits for calm.
func (w *world) live() error {
	if err := w.client.tell("open"); err != nil {
		return err
	}
	if !w.awaitCalm(ruleEnd, "at the start", 60*time.Second, w.everySource) {
		return nil
	}
	begin := now()
	w.log.event("the faults begin")
	var last []*fault
	for _, t := range w.schedule.turns() {
		w.sleepUntil(begin + t.at)
		if !t.begin && w.schedule.stays && t.fault.on == onBackend && t.at > *faultsFor {
			last = append(last, t.fault)
			continue
		}
		if err := w.take(t); err != nil {
			return err
		}
	}
	if len(last) > 0 {
		w.awaitCalm(ruleCore, "on the core", 3*w.schedule.failover+noticeTime+10*time.Second, w.whatWorks)
	}
	for _, f := range last {
		if err := w.take(turn{fault: f}); err != nil {
			return err
		}
	}
	w.log.event("all faults have ended")
	if err := w.publish(w.schedule.final); err != nil {
		return err
	}
	w.awaitCalm(ruleEnd, "at the end", w.longestReturn(), w.everySource)
	return w.finish()
}

func (w *world) longestReturn() (longest time.Duration) {
	for _, c := range w.judge.channels {
		longest = max(longest, w.judge.returnTime(c, *faultsFor))
	}
	return longest
}

func (w *world) sleepUntil(at time.Duration) {
	if d := at - now(); d > 0 {
		<-time.NewTimer(d).C
	}
}

// longestWait limits the wait for calm on a machine that is too slow.
const longestWait = 10 * time.Minute

// awaitCalm waits until calm returns "" for all channels. If that takes longer than bound, the rule
// is broken. Time in which the machine is too slow does not count.
func (w *world) awaitCalm(rule, when string, bound time.Duration, calm func(*channelState, time.Duration) string) bool {
	begin, last, counted := now(), now(), time.Duration(0)
	for {
		w.sleepUntil(now() + 200*time.Millisecond)
		var wrong []string
		w.judge.mu.Lock()
		for _, c := range w.judge.channels {
			if why := calm(c, max(begin, w.judge.changed)); why != "" {
				wrong = append(wrong, c.name+": "+why)
			}
		}
		slow := w.judge.delay(now()-slowFor, now())
		w.judge.mu.Unlock()
		if slow < tooSlow {
			counted += now() - last
		}
		last = now()
		switch {
		case len(wrong) == 0:
			w.log.event("calm %s after %v", when, now()-begin)
			return true
		case counted > bound+busyFactor*slow:
			w.log.broke(rule, "%s: no calm after %v: %s", when, counted, strings.Join(wrong, "; "))
			return false
		case now()-begin > bound+longestWait:
			w.skipped["no calm "+when+": the machine is too slow"]++
			return false
		}
		select {
		case <-w.client.ended:
			return false
		default:
		}
	}
}

// everySource returns "" if the calls of a channel go to all published endpoints of the highest
// priority, and otherwise the reason. It checks the last calls that began after since. The judge's
// lock must be held.
func (w *world) everySource(c *channelState, since time.Duration) string {
	want := slices.Sorted(slices.Values(c.hosts(w.judge.published)[0]))
	seen, why := c.succeeded(since)
	if got := slices.Sorted(maps.Keys(seen)); why == "" && !slices.Equal(got, want) {
		why = fmt.Sprintf("calls went to %v, want %v", seen, want)
	}
	return why
}

// whatWorks returns "" if the calls of a channel succeed, and otherwise the reason. The judge's
// lock must be held.
func (w *world) whatWorks(c *channelState, since time.Duration) string {
	if _, ok := w.judge.settled(c, now()); !ok {
		return ""
	}
	_, why := c.succeeded(since)
	return why
}

// succeeded counts the last calls that began after since, by host. why is the reason if they are
// not enough.
func (c *channelState) succeeded(since time.Duration) (seen map[string]int, why string) {
	seen = make(map[string]int)
	for i := range min(calmCalls, len(c.recent)) {
		r := c.recent[len(c.recent)-1-i]
		switch {
		case r.Start < since:
			return seen, fmt.Sprintf("there were only %d calls", i)
		case r.Failed:
			return seen, fmt.Sprintf("a call to %q failed: %s", r.To, r.Text)
		}
		seen[withoutPort(r.To)]++
	}
	if len(c.recent) < calmCalls {
		return seen, fmt.Sprintf("there were only %d calls", len(c.recent))
	}
	return seen, ""
}

// The limits of memory in MB, under the race detector.
const (
	mostPeak = 500
	mostHeap = 40
)

func (w *world) finish() error {
	if err := w.client.tell("close"); err != nil {
		return err
	}
	for _, p := range w.processes {
		if p.measure(); p.peak > mostPeak {
			w.log.broke(ruleMemory, "%s took %d MB, want at most %d", p.name, p.peak, mostPeak)
		}
	}
	w.judge.mu.Lock()
	defer w.judge.mu.Unlock()
	left := w.judge.left
	w.log.event("at the end, the client has %d MB on its heap, %d goroutines, %d files more, and a peak of %d MB; serve %d MB",
		left.Heap>>20, left.Goroutines, left.Files, w.client.peak, w.processes["serve1"].peak)
	if left.Heap>>20 > mostHeap {
		w.log.broke(ruleMemory, "the heap is %d MB after all channels were closed, want at most %d", left.Heap>>20, mostHeap)
	}
	for _, c := range w.judge.channels {
		w.log.event("%s: %d calls, %d failed", c.name, c.calls, c.failed)
	}
	races, err := os.ReadDir(filepath.Join(w.dir, "races"))
	if left.Text != "" || left.Files > len(races) { // one of these may be open in the client
		w.log.broke(ruleLeak, "%d files; %s", left.Files, left.Text)
	}
	for _, r := range races {
		text, _ := os.ReadFile(filepath.Join(w.dir, "races", r.Name()))
		w.log.broke(ruleRace, "%s", text)
	}
	return err
}
