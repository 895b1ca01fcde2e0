//go:build torture

package torture

import (
	"encoding/json"
	"fmt"
)

func (w *world) runStep(t step) error {
	f := t.fault
	if t.begin {
		if why := w.sandbox.missingFeature(f); why != "" {
			w.skipped[f.name+": "+why]++
			return nil
		}
		w.counts[f.name]++
		w.log.event("begins: %v", f)
	} else {
		if w.sandbox.missingFeature(f) != "" {
			return nil
		}
		w.log.event("ends: %v", f)
	}
	for _, name := range f.subjects {
		if err := w.applyFault(f, name, t.begin); err != nil {
			return fmt.Errorf("%v: %w", f, err)
		}
	}
	return nil
}

func (w *world) applyFault(f *fault, name string, begin bool) error {
	switch f.subjectKind {
	case subjectBackend:
		return w.applyJudged(name, f, begin, w.applyToBackend)
	case subjectClient, subjectNetwork:
		return w.applyJudged("", f, begin, w.applyToClient)
	case subjectSource:
		return w.applyToSource(f, name, begin)
	case subjectScript:
		return w.setRejected(begin)
	case subjectFile:
		if begin {
			return w.files.begin(f, name)
		}
		return w.files.end(f, name)
	case subjectContent:
		w.changes++
		return w.publish(w.schedule.changes[w.changes-1])
	}
	return fmt.Errorf("a fault on %q", f.subjectKind)
}

// applyJudged calls apply to begin or end a fault. It informs the judge before a fault begins and
// after a fault has ended.
func (w *world) applyJudged(h string, f *fault, begin bool, apply func(f *fault, h string, begin bool) error) error {
	if begin {
		w.judge.begin(h, f.faultKind)
	}
	err := apply(f, h, begin)
	if !begin || f.duration == 0 {
		w.judge.end(h)
	}
	return err
}

func (w *world) applyToBackend(f *fault, h string, begin bool) error {
	p := w.processes[h]
	if handled, err := p.applyFault(f, begin); handled {
		return err
	}
	if begin {
		return p.send(f.name)
	}
	return p.send(modeServe)
}

// applyFault begins or ends a fault that any process can have. handled reports whether f is such a
// fault.
func (p *process) applyFault(f *fault, begin bool) (handled bool, err error) {
	switch f.name {
	case "kill", "source killed":
		if begin {
			return true, p.kill()
		}
		return true, p.start()
	case "stop", "source stopped", "client stopped":
		return true, p.stop(begin)
	case "files", "source without files", "client without files":
		if begin {
			return true, p.limitFiles(0)
		}
		return true, p.limitFiles(1 << 16)
	}
	return false, nil
}

func (w *world) applyToClient(f *fault, _ string, begin bool) error {
	if handled, err := w.client.applyFault(f, begin); handled {
		return err
	}
	return w.sandbox.setNetwork(!begin)
}

// applyToSource begins or ends a fault of a source's process. After a restart, the process has
// older versions than before, and a management server publishes the previous endpoints for a
// moment.
func (w *world) applyToSource(f *fault, name string, begin bool) error {
	p := w.processes[name]
	config := p.config.(*sourceConfig)
	config.Content = w.published
	if config.Version > 1000 {
		config.Version -= 1000
	}
	if p.role == "ads" {
		config.Content = w.previous
	}
	if _, err := p.applyFault(f, begin); err != nil {
		return err
	}
	if w.down[name] = begin; begin {
		return nil
	}
	return w.set(name, w.published)
}

func (w *world) setRejected(begin bool) error {
	switch {
	case w.down["ads"]:
		return nil
	case begin:
		return w.set("ads", content{})
	}
	return w.set("ads", w.published)
}

// publish makes all sources publish c. A source that is down publishes c when it is up again.
func (w *world) publish(c content) error {
	w.log.event("published: %v", c)
	w.previous, w.published = w.published, c
	w.judge.publish(c)
	for _, name := range sourceNames {
		if !w.down[name] {
			if err := w.set(name, c); err != nil {
				return err
			}
		}
	}
	return w.files.publish(c)
}

// set makes one source publish c. It does nothing for serve, which reads c from its files.
func (w *world) set(name string, c content) error {
	p := w.processes[name]
	if p.role == "serve" {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return p.send("set " + string(text))
}
