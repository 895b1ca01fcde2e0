package main

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
	core "github.com/understudy-lb/understudy/internal/core/edf"
	"github.com/understudy-lb/understudy/internal/lb/edf"
)

// contestant is something that makes picks. If all contestants shared one loop and passed it a
// function, the compiler couldn't inline the call, so each has its own.
type contestant struct {
	name  string
	loop  func(n int)
	close func()
}

func contestants(weights []uint32) []contestant {
	return []contestant{
		atomicAdd(),
		schedulerPicks("edf.Next", entries(weights, false)),
		schedulerPicks("edf.Next, random start", entries(weights, true)),
		generatedTree(weights),
		textbookEDF(weights),
		randomWRR(weights),
		roundRobin(weights),
		weightedRoundRobin(weights),
		debugTree(weights),
		leastRequest(weights),
		leastRequestTree("least_request in the generated tree", weights, topology.Settings{}),
		leastRequestTree("the same with Overflow and OutlierDetection", weights, topology.Settings{Overflow: true, OutlierDetection: options.On}),
	}
}

func atomicAdd() contestant {
	var counter atomic.Uint64
	return contestant{name: "floor", loop: func(n int) {
		for range n {
			counter.Add(1)
		}
	}}
}

func entries(weights []uint32, randomStart bool) []edf.Entry {
	entries := make([]edf.Entry, len(weights))
	for i, w := range weights {
		entries[i].Weight = w
		if randomStart {
			entries[i].Left = core.RandomLeft(rand.Uint64N)
		}
	}
	return entries
}

func schedulerPicks(name string, entries []edf.Entry) contestant {
	s := edf.New(entries)
	return contestant{name: name, loop: func(n int) {
		for range n {
			s.Next()
		}
	}}
}

func loopOf(p balancer.Picker) func(int) {
	return func(n int) {
		for range n {
			_, _ = p.Pick(balancer.PickInfo{})
		}
	}
}

func callsOf(p balancer.Picker) func(int) {
	return func(n int) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		for range n {
			if result, err := p.Pick(balancer.PickInfo{Ctx: ctx}); err == nil && result.Done != nil {
				result.Done(balancer.DoneInfo{BytesSent: true, BytesReceived: true})
			}
		}
	}
}

// textbook is gRFC A34's queue the way you'd first write it, with a lock, a binary heap and
// floating-point deadlines.
type textbook struct {
	mu      sync.Mutex
	entries []textbookEntry
}

type textbookEntry struct {
	deadline, weight float64
	offset           int
}

func (q *textbook) Len() int { return len(q.entries) }
func (q *textbook) Less(i, j int) bool {
	a, b := q.entries[i], q.entries[j]
	return a.deadline < b.deadline || a.deadline == b.deadline && a.offset < b.offset
}
func (q *textbook) Swap(i, j int) { q.entries[i], q.entries[j] = q.entries[j], q.entries[i] }
func (q *textbook) Push(any)      {}
func (q *textbook) Pop() any      { return nil }

func (q *textbook) next() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := &q.entries[0]
	offset := e.offset
	e.deadline += 1 / e.weight
	heap.Fix(q, 0)
	return offset
}

func textbookEDF(weights []uint32) contestant {
	q := &textbook{}
	for i, w := range weights {
		q.entries = append(q.entries, textbookEntry{1 / float64(w), float64(w), i})
	}
	heap.Init(q)
	return contestant{name: "textbook EDF", loop: func(n int) {
		for range n {
			q.next()
		}
	}}
}

func randomWRR(weights []uint32) contestant {
	cumulated, sum := make([]uint64, len(weights)), uint64(0)
	for i, w := range weights {
		sum += uint64(w)
		cumulated[i] = sum
	}
	return contestant{name: "random WRR", loop: func(n int) {
		for range n {
			point := rand.Uint64N(sum)
			sort.Search(len(cumulated), func(i int) bool { return cumulated[i] > point })
		}
	}}
}
