// Package rehearse simulates outages of a target's priorities to find out what they'd cost before
// they really happen.
package rehearse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/explain"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/rehearse"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// ErrAboveBudget is returned by Run if the result is above the budget. By then, the result has been
// printed.
var ErrAboveBudget = errors.New("above the budget")

type Options struct {
	Input    explain.Options // without JSON, Out and Down
	Clients  int
	Deadline time.Duration
	Service  time.Duration
	Faults   []string // names of faults to play, e.g. "p0 killed"; empty for all
	Seed     uint64
	Budget   string // file name, or ""
	Write    bool   // write the budget instead of checking the result against it
	Plot     string // file name, or ""
	JSON     bool
	Out      io.Writer
	Progress *os.File // a terminal, or nil
}

// In each run, the fault starts after 30 seconds and lasts for a minute.
const (
	length    = 3 * time.Minute
	faultFrom = 30 * time.Second
	faultTo   = 90 * time.Second
)

func Run(ctx context.Context, o Options) error {
	world, err := worldOf(ctx, o)
	if err != nil {
		return err
	}
	budget, err := readBudget(o)
	if err != nil {
		return err
	}
	all := scenariosFor(world)
	if err := checkBudget(budget, all, o.Budget); err != nil {
		return err
	}
	scenarios, err := chosen(all, o.Faults)
	if err != nil {
		return err
	}
	for _, s := range scenarios {
		if err := s.world.Check(); err != nil {
			return fmt.Errorf("%s: %w: want other rows (--fault), or all numbers divided", s.name, err)
		}
	}
	if o.Plot != "" && len(scenarios) != 1 {
		return fmt.Errorf("--plot: %d rows are played, want one: choose it with --fault", len(scenarios))
	}
	play(ctx, scenarios, o)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := report(world, scenarios)
	if o.Plot != "" {
		s := scenarios[0]
		if err := os.WriteFile(o.Plot, []byte(s.outcome.Plot(s.name+": calls in each second", s.world)), 0o644); err != nil {
			return &explain.OutputError{Err: err}
		}
	}
	if o.Write {
		if err := r.writeBudget(o.Budget, budget); err != nil {
			return &explain.OutputError{Err: err}
		}
		return nil
	}
	r.judge(budget)
	if err := r.print(o); err != nil {
		return &explain.OutputError{Err: err}
	}
	if len(r.Above) > 0 {
		return fmt.Errorf("%w: %s", ErrAboveBudget, printable.Count(len(r.Above), "figure", "figures"))
	}
	return nil
}

// recommended returns the options that docs/options.md recommends. We use them unless the target or
// an option says otherwise.
func recommended() []string {
	r := understudy.Recommended()
	return []string{
		fmt.Sprintf("overflow=%t", r.Overflow), fmt.Sprintf("warmStandby=%d", r.WarmStandby),
		fmt.Sprintf("failoverTimeout=%v", r.FailoverTimeout), fmt.Sprintf("outlierDetection=%t", r.OutlierDetection == understudy.On),
	}
}

func worldOf(ctx context.Context, o Options) (w rehearse.World, err error) {
	given := o.Input.Options
	o.Input.Options = nil
	for _, parameter := range recommended() {
		name, _, _ := strings.Cut(parameter, "=")
		if !strings.Contains(strings.Join(append(given, o.Input.File), "&"), name+"=") {
			o.Input.Options = append(o.Input.Options, parameter)
		}
	}
	o.Input.Options = append(o.Input.Options, given...)
	results, _, settings, err := explain.Resolve(ctx, o.Input)
	if err == nil {
		err = unplayed(settings)
	}
	switch {
	case err != nil:
		return w, err
	case len(results) != 1:
		return w, fmt.Errorf("%s has %d clusters, want one: name it with --cluster", o.Input.File, len(results))
	case o.Deadline <= 0 || o.Deadline > time.Hour: // without a deadline, a call to a server that hangs never ends
		return w, fmt.Errorf("--deadline: %v given, want above 0 to 1h", o.Deadline)
	case o.Service <= 0 || o.Service > time.Hour:
		return w, fmt.Errorf("--service: %v given, want above 0 to 1h", o.Service)
	}
	w = rehearse.OfUpdate(results[0].Tree)
	w.Entries, w.Clients, w.Rate, w.Deadlines, w.Length = results[0].Entries, o.Clients, o.Input.Rate, []time.Duration{o.Deadline}, length
	capacities, err := explain.Capacities(o.Input.Capacity, w.Source(len(w.Priorities)-1)+1)
	if err != nil {
		return w, err
	}
	for p, servers := range w.Priorities {
		capacity := capacities[w.Source(p)]
		workers := max(1, int(capacity*o.Service.Seconds()+0.5))
		for i := range servers {
			servers[i].Workers, servers[i].Service = workers, time.Duration(float64(workers)/capacity*float64(time.Second))
		}
	}
	return w, w.Check()
}

// We can't play these settings, since the model knows nothing about their effects.
func unplayed(s options.Settings) error {
	switch {
	case s.SlowStart > 0:
		return errors.New("slowStart= is not rehearsed: want --option slowStart=0s")
	case s.Subset > 0:
		return errors.New("subset= is not rehearsed: want a target without it, and as many endpoints as all clients together use")
	case s.EndpointPolicy != "" && s.EndpointPolicy != options.WeightedRoundRobin:
		return errors.New("endpointPolicy= is not rehearsed: want --option endpointPolicy=weighted_round_robin")
	}
	return nil
}

func play(ctx context.Context, scenarios []*scenario, o Options) {
	var running sync.WaitGroup
	var mu sync.Mutex
	played, next := 0, make(chan *scenario)
	for range min(8, runtime.GOMAXPROCS(0)) {
		running.Go(func() {
			for s := range next {
				s.outcome = rehearse.Play(ctx, s.world, o.Seed)
				mu.Lock()
				if played++; o.Progress != nil {
					fmt.Fprintf(o.Progress, "\rrehearsing %d of %d\x1b[K", played, len(scenarios))
				}
				mu.Unlock()
			}
		})
	}
	for _, s := range scenarios {
		if ctx.Err() == nil {
			next <- s
		}
	}
	close(next)
	running.Wait()
	if o.Progress != nil {
		fmt.Fprint(o.Progress, "\r\x1b[K")
	}
}

func readBudget(o Options) (budget map[string]Limit, err error) {
	if o.Budget == "" || o.Write && len(o.Faults) == 0 {
		return make(map[string]Limit), nil
	}
	text, err := os.ReadFile(o.Budget)
	switch {
	case o.Write && errors.Is(err, fs.ErrNotExist):
		return make(map[string]Limit), nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--budget: %w: want --write with it once", err)
	case err != nil:
		return nil, fmt.Errorf("--budget: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&budget); err != nil {
		return nil, fmt.Errorf("--budget %s: %w, want what --write writes", o.Budget, err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("--budget %s: text after the budget, want one object", o.Budget)
	}
	return budget, nil
}

func checkBudget(budget map[string]Limit, all []*scenario, file string) error {
	for _, name := range slices.Sorted(maps.Keys(budget)) {
		if name != everyRow && !slices.ContainsFunc(all, func(s *scenario) bool { return s.name == name }) {
			return fmt.Errorf("--budget %s: there is no row %.100q, want %q or the name of a row, such as %q", file, name, everyRow, all[1].name)
		}
	}
	return nil
}

func (r *Report) print(o Options) error {
	if o.JSON {
		encoder := json.NewEncoder(o.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	_, err := io.WriteString(o.Out, r.text(table.PainterFor(o.Out)))
	return err
}
