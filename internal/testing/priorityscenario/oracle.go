package priorityscenario

import (
	"fmt"
	"strings"
	"time"

	model "github.com/understudy-lb/understudy/internal/testing/prioritymodel"
)

type Oracle struct {
	model  *model.Model
	update Update
	script map[string][]Reaction
	log    []string
	err    error
}

func NewOracle() *Oracle {
	o := &Oracle{model: model.New(nil)}
	o.model.React, o.model.Log = o.react, o.write
	return o
}

func (o *Oracle) Tie() bool { return o.model.Tie }

func (o *Oracle) write(e model.Event) {
	line := strings.TrimSpace(e.Verb + " " + e.Child)
	switch e.Verb {
	case "create", "update":
		for _, endpoint := range o.update.Endpoints {
			if len(endpoint.Path) > 0 && endpoint.Path[0] == e.Child {
				line += fmt.Sprintf(" %s%v", endpoint.Address, endpoint.Path[1:])
			}
		}
	case "resolver-error":
		line += " " + o.err.Error()
	case "resolve":
		line = e.Verb
	case "publish":
		line = e.Report.Text
		if err, ok := strings.CutPrefix(line, "fail: "); ok {
			line = "publish TRANSIENT_FAILURE: " + err
		} else if line == "queue" {
			line = "publish CONNECTING"
		}
	}
	o.log = append(o.log, line)
}

func (o *Oracle) react(child string) model.Reaction {
	var reaction model.Reaction
	for _, r := range o.script[child] {
		if r.Err != nil {
			reaction.Err = r.Err.Error()
			break
		}
		reaction.Reports = append(reaction.Reports, reportOf(child, r.Report))
	}
	return reaction
}

func reportOf(child string, r Report) model.Report {
	return model.Report{State: r.State.String(), Text: r.Line(child), Err: r.Err().Error()}
}

func (o *Oracle) Script(s map[string][]Reaction) { o.script = s }

func (o *Oracle) Update(u Update) {
	config := model.Config{
		Children:              map[string]model.Child{},
		Priorities:            u.Config.Priorities,
		SourcePriorities:      u.Config.SourcePriorities,
		FailoverTimeout:       u.Config.FailoverTimeout,
		ChildRetention:        u.Config.ChildRetention,
		RemovedChildRetention: u.Config.RemovedChildRetention,
		WarmStandby:           u.Config.WarmStandby,
		Overflow:              u.Config.Overflow,
	}
	for _, name := range u.Config.Children {
		config.Children[name] = model.Child{Policy: name}
	}
	for _, name := range u.Ignore {
		if _, ok := config.Children[name]; ok {
			config.Children[name] = model.Child{Policy: name, Ignore: true}
		}
	}
	o.update = u
	if errs := o.model.Update(config); len(errs) > 1 {
		o.log = append(o.log, fmt.Sprintf("error: %s (and %d more)", errs[0], len(errs)-1))
	} else if len(errs) > 0 {
		o.log = append(o.log, "error: "+errs[0])
	}
}

func (o *Oracle) Report(child string, r Report) { o.model.Report(child, child, reportOf(child, r)) }

func (o *Oracle) Advance(d time.Duration) { o.model.Advance(d) }

func (o *Oracle) ExitIdle() { o.model.ExitIdle() }

func (o *Oracle) ResolverError(err error) {
	o.err = err
	o.model.ResolverError(err.Error())
}

func (o *Oracle) Resolve(child string) { o.model.ResolveNow(child) }

func (o *Oracle) Close() { o.model.Close() }

func (o *Oracle) Take() []string {
	log := o.log
	o.log = nil
	return log
}
