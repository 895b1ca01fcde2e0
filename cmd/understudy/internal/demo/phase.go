package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
)

// A phase changes something, and ends once the last calls show the effect.
type phase struct {
	name   string
	change func(*cluster) error
	// allowed range of priority 0's share of the last calls
	least, most float64
	// all calls move to priority 1, and we measure how long it takes to get the first answer
	failsOver bool
	// fraction of the last calls
	mayFail float64
	// endpoints that returned errors are ejected for up to 40 s, so we can't expect shares to match
	// the weights
	ejects bool
}

var phases = []phase{
	{name: "steady", change: func(*cluster) error { return nil }, least: 1, most: 1},
	{name: "endpoint-killed", change: func(c *cluster) error { return c.backends[0].set(killed) }, least: 1, most: 1},
	{name: "priority-lost", change: func(c *cluster) error { return c.set("p0", killed) }, failsOver: true},
	// Most calls return within seconds, but it would take a quarter of a minute to wait for the
	// rest.
	{name: "priority-restored", change: func(c *cluster) error { return c.set("p0", serving) }, least: 0.6, most: 1},
	{name: "weights-changed", change: changeWeights, least: 0.6, most: 1},
	// A few calls still go to priority 0, to see if it has recovered.
	{name: "errors", change: func(c *cluster) error { return c.set("p0", failing) }, mayFail: 0.02},
	{name: "errors-over", change: func(c *cluster) error { return c.set("p0", serving) }, least: 0.45, most: 1, ejects: true},
	// From here on, priority 0 can answer 100 of the 300 calls a second.
	{name: "full", change: func(c *cluster) error { return c.set("p0", full) }, least: 0.1, most: 0.4, ejects: true},
}

func changeWeights(c *cluster) error {
	c.backends[1].weight, c.backends[2].localityWeight = 4, 2
	return c.write()
}

const (
	lastCalls  = 500 // the ones we look at to see the effect of a phase
	phaseLimit = 20 * time.Second
	tolerance  = 0.02 // how far an endpoint's share may be off
)

func (p phase) run(ctx context.Context, c *cluster, t *traffic) (PhaseResult, error) {
	first, began := len(t.after(0)), time.Now()
	if err := p.change(c); err != nil {
		return PhaseResult{}, err
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return PhaseResult{}, context.Cause(ctx)
		case <-ticker.C:
		}
		all := t.after(first)
		result := p.evaluate(c, all[max(0, len(all)-lastCalls):])
		if len(result.Problems) == 0 || time.Since(began) > phaseLimit {
			p.summarise(&result, c, all, began)
			return result, nil
		}
	}
}

func (p phase) evaluate(c *cluster, last []call) PhaseResult {
	r := PhaseResult{Name: p.name}
	answers, priorities := map[string]int{}, [2]int{}
	failed, lastErr := 0, error(nil)
	for _, call := range last {
		if call.err != nil {
			failed++
			lastErr = call.err
		}
		answers[call.address]++
	}
	for _, b := range c.backends {
		priorities[b.priority] += answers[b.address]
	}
	if len(last) < lastCalls {
		r.problem("only %d calls have ended", len(last))
	}
	if float64(failed) > p.mayFail*float64(len(last)) {
		r.problem("%d of the last %d calls failed: %v", failed, len(last), lastErr)
	}
	answered := float64(max(1, len(last)-failed))
	for i, n := range priorities {
		r.shares[i] = float64(n) / answered
	}
	r.Priority = slices.IndexFunc(priorities[:], func(n int) bool { return n > 0 })
	if s := r.shares[0]; s < p.least || s > p.most {
		r.problem("priority 0 got %.0f %% of the calls, expected %.0f to %.0f %%", 100*s, 100*p.least, 100*p.most)
	}
	for i, weight := range c.weightShares() {
		b := c.backends[i]
		e := EndpointResult{b.address, b.locality, b.priority, weight * r.shares[b.priority], float64(answers[b.address]) / answered}
		if math.Abs(e.Measured-e.Expected) > tolerance && !p.ejects {
			r.problem("%s got %.1f %% of the calls, expected %.1f %%", e.Address, 100*e.Measured, 100*e.Expected)
		}
		r.Endpoints = append(r.Endpoints, e)
	}
	return r
}

func (p phase) summarise(r *PhaseResult, c *cluster, all []call, began time.Time) {
	r.Calls = len(all)
	var lastErr error
	for _, call := range all {
		if call.err != nil {
			r.Failed++
			lastErr = call.err
		} else if p.failsOver && r.FailoverMS == nil && c.find(call.address).priority == 1 {
			r.FailoverMS = new(float64(call.end.Sub(began).Microseconds()) / 1000)
		}
	}
	if p.mayFail == 0 && 1000*r.Failed > r.Calls {
		r.problem("%d of %d calls failed, although each is retried: %v", r.Failed, r.Calls, lastErr)
	}
}

func (c *cluster) find(address string) *backend {
	return c.backends[slices.IndexFunc(c.backends, func(b *backend) bool { return b.address == address })]
}

func (c *cluster) weightShares() []float64 {
	sums := map[string]int{} // total weight of what's serving in each priority and locality
	for _, b := range c.backends {
		if b.answers() {
			if names := b.names(); sums[b.locality] == 0 {
				sums[names[0]] += b.localityWeight
			}
			sums[b.locality] += b.weight
		}
	}
	shares := make([]float64, len(c.backends))
	for i, b := range c.backends {
		if b.answers() {
			shares[i] = float64(b.localityWeight*b.weight) / float64(sums[b.names()[0]]*sums[b.locality])
		}
	}
	return shares
}

// Report is the output with -o json.
type Report struct {
	OK     bool          `json:"ok"`
	Phases []PhaseResult `json:"phases"`
}

type PhaseResult struct {
	Name   string `json:"name"`
	Calls  int    `json:"calls"`
	Failed int    `json:"failed"`
	// Priority is the highest priority that has answered, or -1.
	Priority int `json:"priority"`
	// FailoverMS is the time from when a priority was killed to the first answer from the next one,
	// in milliseconds. It's nil in other phases.
	FailoverMS *float64         `json:"failover_ms"`
	Endpoints  []EndpointResult `json:"endpoints"`
	Problems   []string         `json:"problems,omitempty"`

	shares [2]float64 // each priority's share of the last calls
}

// EndpointResult is the result of one endpoint in a phase. Shares are fractions of the last calls
// that were answered. Expected takes the priority's share as given, and only says how it should
// have been divided up among the priority's endpoints.
type EndpointResult struct {
	Address  string  `json:"address"`
	Locality string  `json:"locality"`
	Priority int     `json:"priority"`
	Expected float64 `json:"expected"`
	Measured float64 `json:"measured"`
}

func (r *PhaseResult) problem(format string, args ...any) {
	if len(r.Problems) < 5 {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

const header = "phase                calls  failed  priority       p0       p1  failover"

func (r *PhaseResult) row() string {
	row := fmt.Sprintf("%-17s  %7d  %6d  %8d  %s  %s", r.Name, r.Calls, r.Failed, r.Priority, table.Percent(r.shares[0], 1), table.Percent(r.shares[1], 1))
	if r.FailoverMS != nil {
		row += fmt.Sprintf("  %.1f ms", *r.FailoverMS)
	}
	return row
}

func (r *Report) print(opts Options) error {
	if opts.JSON {
		encoder := json.NewEncoder(opts.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	paint := table.PainterFor(opts.Out)
	text := ""
	for _, p := range r.Phases {
		for _, problem := range p.Problems {
			text += fmt.Sprintf("%s %s: %s\n", paint.Bad("failed:"), p.Name, problem)
		}
	}
	if r.OK {
		text = paint.Good("ok: every phase went as expected") + "\n"
	}
	_, err := io.WriteString(opts.Out, text)
	return err
}
