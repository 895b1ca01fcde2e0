package differential

import (
	"strings"
	"time"

	model "github.com/understudy-lb/understudy/internal/testing/prioritymodel"
)

const (
	connecting, ready, idle, failed = model.Connecting, model.Ready, model.Idle, model.TransientFailure

	failover  = 10 * time.Second
	retention = 15 * time.Minute
)

// tick is the time between two steps of a schedule. It prevents timers of different steps from
// expiring at the same time.
const tick = time.Millisecond

// driver runs a schedule on the model of gRFC A56.
type driver struct {
	*model.Model
	rejects       map[string]bool
	onUpdate      map[string]string
	published     []string
	reresolutions int
}

// stepResult is the visible result of a step.
type stepResult struct {
	published     []string
	last          string
	returned      bool
	received      string
	reresolutions int
}

// predict returns the expected result of each step of a schedule and of Close. In the given rows of
// docs/differences.md, the model behaves like grpc-go. If ambiguous is true, two timers expire at
// the same time, and the result depends on their order.
func predict(rows map[string]bool, schedule []string) (all []stepResult, ambiguous bool) {
	d := &driver{Model: model.New(rows), rejects: map[string]bool{}, onUpdate: map[string]string{}}
	d.React, d.Log = d.react, d.log
	for _, step := range schedule {
		d.published = nil
		returned := d.applyStep(step)
		d.Advance(tick)
		all = append(all, d.result(returned))
	}
	d.published = nil
	d.Close()
	return append(all, d.result(false)), d.Tie
}

func (d *driver) result(returned bool) stepResult {
	last := ""
	if d.Last().State != "" {
		last = publicationOf(d.Last())
	}
	return stepResult{d.published, last, returned, d.Stubs.Summary(), d.reresolutions}
}

// publicationOf describes a published state in the same form as side.
func publicationOf(r model.Report) string { return r.State + " " + shorten(r.Text) }

func (d *driver) log(e model.Event) {
	switch e.Verb {
	case "publish":
		d.published = append(d.published, publicationOf(e.Report))
	case "resolve":
		d.reresolutions++
	}
}

func (d *driver) react(child string) model.Reaction {
	var reaction model.Reaction
	if state, ok := d.onUpdate[child]; ok {
		reaction.Reports = []model.Report{{State: state, Text: pickOf(d.idOf(child), state)}}
	}
	if d.rejects[child] {
		reaction.Err = errRefused.Error()
	}
	return reaction
}

func (d *driver) idOf(child string) string { return d.Updating(child).ID }

func (d *driver) applyStep(step string) (returned bool) {
	words := strings.Fields(step)
	switch words[0] {
	case "update":
		return len(d.Update(configOf(words[1:]))) > 0
	case "wait":
		duration, err := time.ParseDuration(words[1])
		if err != nil {
			panic(err)
		}
		d.Advance(duration)
	case "refuse", "accept":
		d.rejects[words[1]] = words[0] == "refuse"
	case "on-update":
		d.onUpdate[words[1]] = words[2]
	case "exit-idle":
		d.ExitIdle()
	case "resolver-error":
		d.ResolverError("no such host")
	case "resolve-now":
		if s := d.Stubs.Find(words[1]); s != nil {
			d.ResolveNow(nameOf(s.ID))
		}
	case "update-without":
		d.UpdateWithout()
		return true
	case "report":
		d.Report(nameOf(words[1]), words[1], model.Report{State: words[2], Text: pickOf(words[1], words[2])})
	}
	return false
}

// configOf returns the configuration for a list of children, as configurePriority does for the
// policies.
func configOf(words []string) model.Config {
	config := model.Config{Children: map[string]model.Child{}, FailoverTimeout: failover, ChildRetention: retention}
	for _, id := range words {
		if id == "retain" {
			config.RemovedChildRetention = retention
			continue
		}
		id, ignored := strings.CutSuffix(id, "!")
		config.Children[nameOf(id)] = model.Child{Policy: id, Ignore: ignored}
		config.Priorities = append(config.Priorities, nameOf(id))
	}
	return config
}

func pickOf(id, state string) string {
	return map[string]string{
		ready: id, idle: "fail: " + id + " idle", connecting: "queue", failed: "fail: " + id + " refused",
	}[state]
}

func nameOf(id string) string {
	name, _, _ := strings.Cut(id, ":")
	return name
}
