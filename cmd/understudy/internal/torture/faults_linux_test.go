package torture

import (
	"encoding/json"
	"fmt"
)

func (w *world) take(t turn) error {
	f := t.fault
	if t.begin {
		if why := w.sandbox.lacks(f); why != "" {
			w.skipped[f.name+": "+why]++
			return nil
		}
		w.counts[f.name]++
		w.log.event("begins: %v", f)
	} else {
		if w.sandbox.lacks(f) != "" {
			return nil
		}
		w.log.event("ends: %v", f)
	}
	for _, name := range f.subjects {
		if err := w.strike(f, name, t.begin); err != nil {
			return fmt.Errorf("%v: %w", f, err)
		}
	}
	return nil
}

func (w *world) strike(f *fault, name string, begin bool) error {
	switch f.on {
	case onBackend:
		return w.troubled(name, f, begin, w.backend)
	case onClient, onNetwork:
		return w.troubled("", f, begin, w.everywhere)
	case onSource:
		return w.source(f, name, begin)
	case onScript:
		return w.refused(begin)
	case onFile:
		if begin {
			return w.files.begin(f, name)
		}
		return w.files.end(f, name)
	case onContent:
		w.changes++
		return w.publish(w.schedule.changes[w.changes-1])
	}
	return fmt.Errorf("a fault on %q", f.on)
}

// troubled calls do to begin or end a fault. It tells the judge before a fault begins and after it
// has ended.
func (w *world) troubled(h string, f *fault, begin bool, do func(f *fault, h string, begin bool) error) error {
	if begin {
		w.judge.begin(h, f.kind)
	}
	err := do(f, h, begin)
	if !begin || f.length == 0 {
		w.judge.end(h)
	}
	return err
}

func (w *world) backend(f *fault, h string, begin bool) error {
	p := w.processes[h]
	if handled, err := p.struck(f, begin); handled {
		return err
	}
	if begin {
		return p.tell(f.name)
	}
	return p.tell(modeServe)
}

// struck begins or ends a fault that any process can have. handled reports whether f is one.
func (p *process) struck(f *fault, begin bool) (handled bool, err error) {
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

func (w *world) everywhere(f *fault, _ string, begin bool) error {
	if handled, err := w.client.struck(f, begin); handled {
		return err
	}
	return w.sandbox.setNetwork(!begin)
}

// source begins or ends a fault of a source's process. After a restart, the process has older
// versions than before, and a management server publishes the previous endpoints for a moment.
func (w *world) source(f *fault, name string, begin bool) error {
	p := w.processes[name]
	config := p.config.(*sourceConfig)
	config.Content = w.published
	if config.Version > 1000 {
		config.Version -= 1000
	}
	if p.role == "ads" {
		config.Content = w.before
	}
	if _, err := p.struck(f, begin); err != nil {
		return err
	}
	if w.away[name] = begin; begin {
		return nil
	}
	return w.set(name, w.published)
}

func (w *world) refused(begin bool) error {
	switch {
	case w.away["ads"]:
		return nil
	case begin:
		return w.set("ads", content{})
	}
	return w.set("ads", w.published)
}

// publish makes all sources publish c. Sources that are down do so when they are up again.
func (w *world) publish(c content) error {
	w.log.event("published: %v", c)
	w.before, w.published = w.published, c
	w.judge.publish(c)
	for _, name := range sourceNames {
		if !w.away[name] {
			if err := w.set(name, c); err != nil {
				return err
			}
		}
	}
	return w.files.publish(c)
}

// set makes one source publish c. A server of files gets c from its files instead.
func (w *world) set(name string, c content) error {
	p := w.processes[name]
	if p.role == "serve" {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return p.tell("set " + string(text))
}
