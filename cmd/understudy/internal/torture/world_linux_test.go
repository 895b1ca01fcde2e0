//go:build torture

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

// The sources have the same host but different ports. The backends have different hosts but the
// same port.
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
	previous  content // the content that was published before
	down      map[string]bool
	changes   int
	counts    map[string]int
	skipped   map[string]int
	sandbox   sandbox
	files     *files
}

var channelCount = 2 * len(targets)

// target is the target of some channels. visible returns those of the published endpoints that its
// source reports.
type target struct {
	name    string
	url     string
	visible func(content) content
}

func asPublished(c content) content { return c }

var targets = []target{
	{"list", "failover:///dns://DNS/t0.test:PORT,SECOND:PORT,dns://DNS/t2.test:PORT?refresh=5s", func(c content) content {
		return content{c[0], c[1][:1], c[2]}
	}},
	{"dns", "failover:///dns://DNS/all.test:PORT?refresh=5s", func(c content) content { return content{c.allHosts()} }},
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
		processes: make(map[string]*process), down: make(map[string]bool), counts: make(map[string]int), skipped: make(map[string]int),
		judge: &judge{log: log, healthyHost: s.healthyHost, failover: s.failover, periods: make(map[string][]*faultPeriod)},
	}
	w.files = &files{dir: dir, port: backendPort, disk: box.disk}
	if err := w.files.prepare(s.initial); err != nil {
		return nil, err
	}
	w.published, w.previous = s.initial, s.initial
	w.judge.publish(s.initial)
	for _, h := range backends.allHosts() {
		w.processes[h] = &process{name: h, role: "backend", config: backendConfig{withPort(backendPort, h)[0]}}
	}
	for _, name := range sourceNames {
		config := &sourceConfig{Address: sourceAddress(name), Port: backendPort, Content: s.initial, Version: 10_000}
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
			w.judge.channels = append(w.judge.channels, &channelState{name: name, recommended: recommended, visible: t.visible})
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
		p.log, p.handleLine, p.dir = w.log, w.handleLine, filepath.Join(w.dir, "races")
		go func() { started <- p.start() }()
	}
	var startErr error
	for range w.processes {
		startErr = errors.Join(startErr, <-started)
	}
	return startErr
}

func (w *world) handleLine(name, line string) {
	var r record
	err := json.Unmarshal([]byte(line), &r)
	if r.Kind == kindPulse && w.processes[name].wasStopped(r) {
		r.Delay = 0
	}
	switch {
	case err != nil:
		w.log.eventRepeated(name + " prints: " + line)
	case name == "client":
		w.judge.addRecord(r)
	default:
		w.judge.addPulse(r)
	}
}

func (w *world) killAll() {
	for _, p := range w.processes {
		if p.cmd != nil && p.cmd.Process != nil {
			select {
			case <-p.exited:
			default:
				p.kill()
			}
		}
	}
}

// run runs the schedule: it opens the channels, applies the faults, and waits until all channels
// are calm.
func (w *world) run() error {
	if err := w.client.send("open"); err != nil {
		return err
	}
	if !w.awaitCalm(ruleEnd, "at the start", 60*time.Second, w.checkPublished) {
		return nil
	}
	begin := now()
	w.log.event("the faults begin")
	var lastFaults []*fault
	for _, t := range w.schedule.steps() {
		w.sleepUntil(begin + t.time)
		if !t.begin && w.schedule.keepsLastFaults && t.fault.subjectKind == subjectBackend && t.time > *faultsFor {
			lastFaults = append(lastFaults, t.fault)
			continue
		}
		if err := w.runStep(t); err != nil {
			return err
		}
	}
	if len(lastFaults) > 0 {
		w.awaitCalm(ruleCore, "on the core", 3*w.schedule.failover+detectionLimit+10*time.Second, w.checkSucceeding)
	}
	for _, f := range lastFaults {
		if err := w.runStep(step{fault: f}); err != nil {
			return err
		}
	}
	w.log.event("all faults have ended")
	if err := w.publish(w.schedule.final); err != nil {
		return err
	}
	w.awaitCalm(ruleEnd, "at the end", w.maxReturnTime(), w.checkPublished)
	return w.finish()
}

func (w *world) maxReturnTime() (maximum time.Duration) {
	for _, c := range w.judge.channels {
		maximum = max(maximum, w.judge.returnTime(c, *faultsFor))
	}
	return maximum
}

func (w *world) sleepUntil(at time.Duration) {
	if d := at - now(); d > 0 {
		<-time.NewTimer(d).C
	}
}

// maxSlowTime limits how long awaitCalm waits on a machine that is too slow.
const maxSlowTime = 10 * time.Minute

// awaitCalm waits until check returns "" for all channels. If that takes longer than bound, the
// rule is broken. Time during which the machine is too slow does not count.
func (w *world) awaitCalm(rule, when string, bound time.Duration, check func(*channelState, time.Duration) string) bool {
	begin, last, elapsed := now(), now(), time.Duration(0)
	for {
		w.sleepUntil(now() + 200*time.Millisecond)
		var problems []string
		w.judge.mu.Lock()
		for _, c := range w.judge.channels {
			if problem := check(c, max(begin, w.judge.changedAt)); problem != "" {
				problems = append(problems, c.name+": "+problem)
			}
		}
		slow := w.judge.delay(now()-slowPeriod, now())
		w.judge.mu.Unlock()
		if slow < maxDelay {
			elapsed += now() - last
		}
		last = now()
		switch {
		case len(problems) == 0:
			w.log.event("calm %s after %v", when, now()-begin)
			return true
		case elapsed > bound+busyFactor*slow:
			w.log.ruleBroken(rule, "%s: no calm after %v: %s", when, elapsed, strings.Join(problems, "; "))
			return false
		case now()-begin > bound+maxSlowTime:
			w.skipped["no calm "+when+": the machine is too slow"]++
			return false
		}
		select {
		case <-w.client.exited:
			return false
		default:
		}
	}
}

// checkPublished returns "" if the calls of a channel go to all published endpoints of the highest
// priority, and otherwise the problem. It checks the last calls that began after since. The judge's
// lock must be held.
func (w *world) checkPublished(c *channelState, since time.Duration) string {
	want := slices.Sorted(slices.Values(c.hosts(w.judge.published)[0]))
	seen, problem := c.countSucceeded(since)
	if got := slices.Sorted(maps.Keys(seen)); problem == "" && !slices.Equal(got, want) {
		problem = fmt.Sprintf("calls went to %v, want %v", seen, want)
	}
	return problem
}

// checkSucceeding returns "" if the calls of a channel succeed, and otherwise the problem. The
// judge's lock must be held.
func (w *world) checkSucceeding(c *channelState, since time.Duration) string {
	if _, ok := w.judge.mustSucceedAfter(c, now()); !ok {
		return ""
	}
	_, problem := c.countSucceeded(since)
	return problem
}

// countSucceeded counts the last calls that began after since, by host. problem says why these
// calls do not suffice, or is "".
func (c *channelState) countSucceeded(since time.Duration) (seen map[string]int, problem string) {
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

// The limits of memory in MB, with the race detector.
const (
	maxPeakMB = 500
	maxHeapMB = 40
)

func (w *world) finish() error {
	if err := w.client.send("close"); err != nil {
		return err
	}
	for _, p := range w.processes {
		if p.measure(); p.peakMB > maxPeakMB {
			w.log.ruleBroken(ruleMemory, "%s took %d MB, want at most %d", p.name, p.peakMB, maxPeakMB)
		}
	}
	w.judge.mu.Lock()
	defer w.judge.mu.Unlock()
	left := w.judge.endRecord
	w.log.event("at the end, the client has %d MB on its heap, %d goroutines, %d files more, and a peak of %d MB; serve %d MB",
		left.Heap>>20, left.Goroutines, left.Files, w.client.peakMB, w.processes["serve1"].peakMB)
	if left.Heap>>20 > maxHeapMB {
		w.log.ruleBroken(ruleMemory, "the heap is %d MB after all channels were closed, want at most %d", left.Heap>>20, maxHeapMB)
	}
	for _, c := range w.judge.channels {
		w.log.event("%s: %d calls, %d failed", c.name, c.calls, c.failed)
	}
	races, err := os.ReadDir(filepath.Join(w.dir, "races"))
	// Files that the client left open are a leak, except its race logs.
	if left.Text != "" || left.Files > len(races) {
		w.log.ruleBroken(ruleLeak, "%d files; %s", left.Files, left.Text)
	}
	for _, r := range races {
		text, _ := os.ReadFile(filepath.Join(w.dir, "races", r.Name()))
		w.log.ruleBroken(ruleRace, "%s", text)
	}
	return err
}
