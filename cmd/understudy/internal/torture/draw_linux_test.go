package torture

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

type kind struct {
	name string
	// on is the kind of subject: a backend, the process of a source, the client, a directory of
	// files, the network, or the published endpoints.
	on string
	// longest limits the duration of the fault. It is 0 for a fault without a duration.
	longest time.Duration
	// sick means that the backend keeps its connections but fails calls. The algorithm of gRFC A56
	// alone does not notice this.
	sick bool
	// loud means that connections end at once and new ones are refused.
	loud bool
	// packets means that packets are lost, so that TCP retransmits them late.
	packets bool
}

const (
	onBackend = "backend"
	onSource  = "source"
	onScript  = "ads"
	onClient  = "client"
	onFile    = "file"
	onNetwork = "network"
	onContent = "content"
)

var kinds = []kind{
	{name: "kill", on: onBackend, longest: 12 * time.Second, loud: true},
	{name: "stop", on: onBackend, longest: 12 * time.Second, sick: true},
	{name: "files", on: onBackend, longest: 8 * time.Second},
	{name: modeRefuse, on: onBackend, longest: 8 * time.Second},
	{name: modeSilent, on: onBackend, longest: 12 * time.Second},
	{name: modeGarbage, on: onBackend, longest: 8 * time.Second, loud: true},
	{name: modeCrash, on: onBackend, longest: 8 * time.Second, sick: true},
	{name: modeReset, on: onBackend},
	{name: modeGoaway, on: onBackend},
	{name: modeCut, on: onBackend, longest: 12 * time.Second, sick: true, packets: true},
	{name: modeLossy, on: onBackend, longest: 8 * time.Second, sick: true, packets: true},
	{name: modeErrors, on: onBackend, longest: 8 * time.Second, sick: true},
	{name: modeUnavail, on: onBackend, longest: 8 * time.Second, sick: true},
	{name: modeHang, on: onBackend, longest: 12 * time.Second, sick: true},
	{name: modeNotServing, on: onBackend, longest: 8 * time.Second},
	{name: "source killed", on: onSource, longest: 12 * time.Second},
	{name: "source stopped", on: onSource, longest: 12 * time.Second},
	{name: "source without files", on: onSource, longest: 8 * time.Second},
	{name: "resource refused", on: onScript, longest: 8 * time.Second},
	{name: "client without files", on: onClient, longest: 5 * time.Second},
	{name: "client stopped", on: onClient, longest: 3 * time.Second},
	{name: "half written", on: onFile, longest: 1500 * time.Millisecond},
	{name: "broken content", on: onFile, longest: 8 * time.Second},
	{name: "directory gone", on: onFile, longest: 8 * time.Second},
	{name: "disk full", on: onFile, longest: 8 * time.Second},
	{name: "times shifted", on: onFile, longest: 12 * time.Second},
	{name: "network down", on: onNetwork, longest: 3 * time.Second, packets: true},
	{name: "change", on: onContent},
}

var (
	sourceNames = []string{"dns", "serve1", "serve2", "ads", "api"}
	fileNames   = []string{"files", "served"}
)

type fault struct {
	kind
	at, length time.Duration
	subjects   []string
	part       float64 // the part of the file that is written; chooses a variant for other faults
}

func (f fault) String() string {
	text := f.name + " " + strings.Join(f.subjects, " ")
	if f.length > 0 {
		text += " for " + f.length.String()
	}
	return text
}

func (f fault) end() time.Duration { return f.at + f.length }

// schedule is the plan of a test run. It depends only on the seed.
type schedule struct {
	core     string // the host that is spared by all faults of backends
	starting content
	changes  []content
	final    content
	failover time.Duration
	faults   []fault
	// stays means that the last faults end only after calls to the core have succeeded.
	stays   bool
	retries []bool
}

const defaultFailover = 10 * time.Second

func draw(seed uint64, length time.Duration, only string) schedule {
	r := rand.New(rand.NewPCG(seed, 29))
	s := schedule{
		core:     []string{host(0, 0), host(1, 0), host(2, 0)}[r.IntN(3)],
		failover: []time.Duration{defaultFailover, 3 * time.Second}[r.IntN(2)],
		stays:    r.IntN(3) == 0,
	}
	for range channelCount {
		s.retries = append(s.retries, r.IntN(2) == 0)
	}
	s.starting, s.final = someContent(r, r.IntN(2) == 0), someContent(r, true)
	s.final[0] = []string{host(0, 0), host(0, 2)} // a source that has missed the final content never sends a call to the third host
	s.starting[0] = slices.DeleteFunc(s.starting[0], func(h string) bool { return h == host(0, 2) })
	chosen := swarm(r, only)
	busy := make(map[string]time.Duration)
	gap := length / time.Duration(8+r.IntN(16))
	for at := gap; at < length; at += gap/2 + time.Duration(r.Int64N(int64(gap))) {
		k := chosen[r.IntN(len(chosen))]
		f := fault{kind: k, at: at.Round(time.Millisecond), subjects: s.subjects(r, k), part: r.Float64()}
		if k.longest > 0 {
			f.length = (k.longest/8 + time.Duration(r.Int64N(int64(k.longest*7/8)))).Round(time.Millisecond)
			if k.on == onBackend && r.IntN(3) == 0 {
				f.length = min(4*f.length, max(f.length, length+10*time.Second-f.at)) // some last longer than all timers
			}
		}
		if slices.ContainsFunc(f.subjects, func(name string) bool { return busy[name] > f.at }) || len(f.subjects) == 0 {
			continue
		}
		for _, name := range f.subjects {
			busy[name] = f.end() + 500*time.Millisecond
		}
		if k.on == onContent {
			s.changes = append(s.changes, someContent(r, r.IntN(2) == 0))
		}
		s.faults = append(s.faults, f)
	}
	return s
}

// swarm returns a random half of the kinds of faults.
func swarm(r *rand.Rand, only string) (chosen []kind) {
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

// subjects draws the subjects of a fault: for example one backend, or all of a priority. The core
// is never among them.
func (s schedule) subjects(r *rand.Rand, k kind) []string {
	switch k.on {
	case onSource:
		return []string{sourceNames[r.IntN(len(sourceNames))]}
	case onFile:
		if k.name == "disk full" {
			return fileNames
		}
		return []string{fileNames[r.IntN(len(fileNames))]}
	case onBackend:
	default:
		return []string{k.on}
	}
	tier := backends[r.IntN(len(backends))]
	if r.IntN(2) == 0 {
		tier = []string{tier[r.IntN(len(tier))]}
	}
	return slices.DeleteFunc(slices.Clone(tier), func(h string) bool { return h == s.core })
}

var backends = content{{host(0, 0), host(0, 1), host(0, 2)}, {host(1, 0), host(1, 1)}, {host(2, 0)}}

// someContent draws the endpoints that the sources publish. They include the first host of each
// priority.
func someContent(r *rand.Rand, all bool) (c content) {
	for _, tier := range backends {
		some := tier[:1:1]
		for _, h := range tier[1:] {
			if all || r.IntN(2) == 0 {
				some = append(some, h)
			}
		}
		c = append(c, some)
	}
	return c
}

type turn struct {
	at    time.Duration
	begin bool
	fault *fault
}

func (s schedule) turns() (all []turn) {
	for i := range s.faults {
		f := &s.faults[i]
		all = append(all, turn{f.at, true, f})
		if f.length > 0 {
			all = append(all, turn{f.end(), false, f})
		}
	}
	slices.SortStableFunc(all, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	return all
}

func (s schedule) String() string {
	text := fmt.Sprintf("the core is %s; failoverTimeout %v; faults stay: %v; published %v, at last %v", s.core, s.failover, s.stays, s.starting, s.final)
	for _, f := range s.faults {
		text += fmt.Sprintf("\n  %8.3fs %v", f.at.Seconds(), f)
	}
	return text
}
