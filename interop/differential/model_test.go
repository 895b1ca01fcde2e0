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

// tick is added to each step of a schedule, so that timers of different steps never expire at the
// same time.
const tick = time.Millisecond

// driver runs schedules on the model of gRFC A56.
type driver struct {
	*model.Model
	refuses   map[string]bool
	onUpdate  map[string]string
	published []string
	asked     int
}

// seen is the visible result of a step.
type seen struct {
	published []string
	last      string
	returned  bool
	received  string
	asked     int
}

// predict returns the expected result of each step of a schedule and of Close. The model behaves
// like grpc-go in the given rows. tie means that two timers expire at the same time, so that the
// result depends on their order.
func predict(rows map[string]bool, schedule []string) (all []seen, tie bool) {
	d := &driver{Model: model.New(rows), refuses: map[string]bool{}, onUpdate: map[string]string{}}
	d.React, d.Log = d.react, d.log
	for _, step := range schedule {
		d.published = nil
		returned := d.do(step)
		d.Advance(tick)
		all = append(all, d.see(returned))
	}
	d.published = nil
	d.Close()
	return append(all, d.see(false)), d.Tie
}

func (d *driver) see(returned bool) seen {
	last := ""
	if d.Last().State != "" {
		last = publicationOf(d.Last())
	}
	return seen{d.published, last, returned, d.Stubs.Told(), d.asked}
}

// publicationOf describes a published state in the same way as side does.
func publicationOf(r model.Report) string { return r.State + " " + about(r.Text) }

func (d *driver) log(e model.Event) {
	switch e.Verb {
	case "publish":
		d.published = append(d.published, publicationOf(e.Report))
	case "resolve":
		d.asked++
	}
}

func (d *driver) react(child string) model.Reaction {
	var reaction model.Reaction
	if state, ok := d.onUpdate[child]; ok {
		reaction.Reports = []model.Report{{State: state, Text: pickOf(d.idOf(child), state)}}
	}
	if d.refuses[child] {
		reaction.Err = errRefused.Error()
	}
	return reaction
}

func (d *driver) idOf(child string) string { return d.Updating(child).ID }

func (d *driver) do(step string) (returned bool) {
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
		d.refuses[words[1]] = words[0] == "refuse"
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

// configOf returns the model's equivalent of configurePriority.
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
