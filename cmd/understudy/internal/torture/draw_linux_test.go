//go:build torture

package torture

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

type faultKind struct {
	name string
	// subjectKind says what has the fault: a backend, the process of a source, the client, a
	// directory of files, the network, or the published endpoints.
	subjectKind string
	// maxDuration limits the duration of the fault. It is 0 for a fault without a duration.
	maxDuration time.Duration
	// failsCalls means that the backend keeps its connections but fails calls. The algorithm of
	// gRFC A56 alone does not notice this.
	failsCalls bool
	// refusesConns means that connections end immediately and new connections are refused.
	refusesConns bool
	// losesPackets means that packets are lost, so that TCP retransmits them late.
	losesPackets bool
}

const (
	subjectBackend = "backend"
	subjectSource  = "source"
	subjectScript  = "ads"
	subjectClient  = "client"
	subjectFile    = "file"
	subjectNetwork = "network"
	subjectContent = "content"
)

var kinds = []faultKind{
	{name: "kill", subjectKind: subjectBackend, maxDuration: 12 * time.Second, refusesConns: true},
	{name: "stop", subjectKind: subjectBackend, maxDuration: 12 * time.Second, failsCalls: true},
	{name: "files", subjectKind: subjectBackend, maxDuration: 8 * time.Second},
	{name: modeRefuse, subjectKind: subjectBackend, maxDuration: 8 * time.Second},
	{name: modeSilent, subjectKind: subjectBackend, maxDuration: 12 * time.Second},
	{name: modeGarbage, subjectKind: subjectBackend, maxDuration: 8 * time.Second, refusesConns: true},
	{name: modeCrash, subjectKind: subjectBackend, maxDuration: 8 * time.Second, failsCalls: true},
	{name: modeReset, subjectKind: subjectBackend},
	{name: modeGoaway, subjectKind: subjectBackend},
	{name: modeCut, subjectKind: subjectBackend, maxDuration: 12 * time.Second, failsCalls: true, losesPackets: true},
	{name: modeLossy, subjectKind: subjectBackend, maxDuration: 8 * time.Second, failsCalls: true, losesPackets: true},
	{name: modeErrors, subjectKind: subjectBackend, maxDuration: 8 * time.Second, failsCalls: true},
	{name: modeUnavail, subjectKind: subjectBackend, maxDuration: 8 * time.Second, failsCalls: true},
	{name: modeHang, subjectKind: subjectBackend, maxDuration: 12 * time.Second, failsCalls: true},
	{name: modeNotServing, subjectKind: subjectBackend, maxDuration: 8 * time.Second},
	{name: "source killed", subjectKind: subjectSource, maxDuration: 12 * time.Second},
	{name: "source stopped", subjectKind: subjectSource, maxDuration: 12 * time.Second},
	{name: "source without files", subjectKind: subjectSource, maxDuration: 8 * time.Second},
	{name: "resource refused", subjectKind: subjectScript, maxDuration: 8 * time.Second},
	{name: "client without files", subjectKind: subjectClient, maxDuration: 5 * time.Second},
	{name: "client stopped", subjectKind: subjectClient, maxDuration: 3 * time.Second},
	{name: "half written", subjectKind: subjectFile, maxDuration: 1500 * time.Millisecond},
	{name: "broken content", subjectKind: subjectFile, maxDuration: 8 * time.Second},
	{name: "directory gone", subjectKind: subjectFile, maxDuration: 8 * time.Second},
	{name: "disk full", subjectKind: subjectFile, maxDuration: 8 * time.Second},
	{name: "times shifted", subjectKind: subjectFile, maxDuration: 12 * time.Second},
	{name: "network down", subjectKind: subjectNetwork, maxDuration: 3 * time.Second, losesPackets: true},
	{name: "change", subjectKind: subjectContent},
}

var (
	sourceNames = []string{"dns", "serve1", "serve2", "ads", "api"}
	fileNames   = []string{"files", "served"}
)

type fault struct {
	faultKind
	start, duration time.Duration
	subjects        []string
	// fraction is a random number in [0, 1). The fault "half written" writes this fraction of a file.
	// The faults "times shifted" and "disk full" have two variants. A fraction below 0.5 selects one
	// of them, and any other fraction selects the other.
	fraction float64
}

func (f fault) String() string {
	text := f.name + " " + strings.Join(f.subjects, " ")
	if f.duration > 0 {
		text += " for " + f.duration.String()
	}
	return text
}

func (f fault) end() time.Duration { return f.start + f.duration }

// schedule is the plan of a test run. It depends only on the seed.
type schedule struct {
	healthyHost string // the host that has no faults of its own
	initial     content
	changes     []content
	final       content
	failover    time.Duration
	faults      []fault
	// keepsLastFaults means that the last faults end only after calls to the healthy host have
	// succeeded.
	keepsLastFaults bool
	retries         []bool
}

const defaultFailover = 10 * time.Second

func draw(seed uint64, length time.Duration, only string) schedule {
	r := rand.New(rand.NewPCG(seed, 29))
	s := schedule{
		healthyHost:     []string{host(0, 0), host(1, 0), host(2, 0)}[r.IntN(3)],
		failover:        []time.Duration{defaultFailover, 3 * time.Second}[r.IntN(2)],
		keepsLastFaults: r.IntN(3) == 0,
	}
	for range channelCount {
		s.retries = append(s.retries, r.IntN(2) == 0)
	}
	s.initial, s.final = randomContent(r, r.IntN(2) == 0), randomContent(r, true)
	s.final[0] = []string{host(0, 0), host(0, 2)} // differs from the initial content, so that a source that misses it breaks a rule
	s.initial[0] = slices.DeleteFunc(s.initial[0], func(h string) bool { return h == host(0, 2) })
	chosen := chooseKinds(r, only)
	busyUntil := make(map[string]time.Duration)
	gap := length / time.Duration(8+r.IntN(16))
	for at := gap; at < length; at += gap/2 + time.Duration(r.Int64N(int64(gap))) {
		k := chosen[r.IntN(len(chosen))]
		f := fault{faultKind: k, start: at.Round(time.Millisecond), subjects: s.subjects(r, k), fraction: r.Float64()}
		if k.maxDuration > 0 {
			f.duration = (k.maxDuration/8 + time.Duration(r.Int64N(int64(k.maxDuration*7/8)))).Round(time.Millisecond)
			if k.subjectKind == subjectBackend && r.IntN(3) == 0 {
				f.duration = min(4*f.duration, max(f.duration, length+10*time.Second-f.start)) // some faults last longer than all timers
			}
		}
		if slices.ContainsFunc(f.subjects, func(name string) bool { return busyUntil[name] > f.start }) || len(f.subjects) == 0 {
			continue
		}
		for _, name := range f.subjects {
			busyUntil[name] = f.end() + 500*time.Millisecond
		}
		if k.subjectKind == subjectContent {
			s.changes = append(s.changes, randomContent(r, r.IntN(2) == 0))
		}
		s.faults = append(s.faults, f)
	}
	return s
}

// chooseKinds returns a random half of the kinds of faults.
func chooseKinds(r *rand.Rand, only string) (chosen []faultKind) {
	for _, k := range kinds {
		if only == k.name || only == "" && r.IntN(2) == 0 {
			chosen = append(chosen, k)
		}
	}
	if len(chosen) == 0 {
		return kinds
	}
	return chosen
}

// subjects draws the subjects of a fault: for example one backend, or all backends of a priority.
// The healthy host is never among them.
func (s schedule) subjects(r *rand.Rand, k faultKind) []string {
	switch k.subjectKind {
	case subjectSource:
		return []string{sourceNames[r.IntN(len(sourceNames))]}
	case subjectFile:
		if k.name == "disk full" {
			return fileNames
		}
		return []string{fileNames[r.IntN(len(fileNames))]}
	case subjectBackend:
	default:
		return []string{k.subjectKind}
	}
	hosts := backends[r.IntN(len(backends))]
	if r.IntN(2) == 0 {
		hosts = []string{hosts[r.IntN(len(hosts))]}
	}
	return slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return h == s.healthyHost })
}

var backends = content{{host(0, 0), host(0, 1), host(0, 2)}, {host(1, 0), host(1, 1)}, {host(2, 0)}}

// randomContent draws the endpoints that the sources publish. The first host of each priority is
// always included.
func randomContent(r *rand.Rand, all bool) (c content) {
	for _, hosts := range backends {
		chosen := hosts[:1:1]
		for _, h := range hosts[1:] {
			if all || r.IntN(2) == 0 {
				chosen = append(chosen, h)
			}
		}
		c = append(c, chosen)
	}
	return c
}

type step struct {
	time  time.Duration
	begin bool
	fault *fault
}

func (s schedule) steps() (all []step) {
	for i := range s.faults {
		f := &s.faults[i]
		all = append(all, step{f.start, true, f})
		if f.duration > 0 {
			all = append(all, step{f.end(), false, f})
		}
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.time, b.time) })
	return all
}

func (s schedule) String() string {
	text := fmt.Sprintf("the core is %s; failoverTimeout %v; faults stay: %v; published %v, at last %v", s.healthyHost, s.failover, s.keepsLastFaults, s.initial, s.final)
	for _, f := range s.faults {
		text += fmt.Sprintf("\n  %8.3fs %v", f.start.Seconds(), f)
	}
	return text
}
