package priorityscenario

import (
	"slices"
	"time"
)

// Script is of Target.
func (o *Oracle) Script(s map[string][]Reaction) { o.script = s }

// Update is of Target.
func (o *Oracle) Update(u Update) {
	if o.closed {
		return
	}
	o.errors = nil
	o.event(func() { o.begin(u) })
	var errors []string
	o.event(func() {
		o.updating, o.force = false, true
		o.ChoosePriority()
		errors = o.errors
	})
	if len(errors) > 1 {
		o.write("error: %s (and %d more)", errors[0], len(errors)-1)
	} else if len(errors) > 0 {
		o.write("error: %s", errors[0])
	}
}

func (o *Oracle) begin(u Update) {
	if !slices.Equal(u.Config.Priorities, o.config.Priorities) {
		o.currentPriority = -1
	}
	o.update, o.config, o.updating = u, u.Config, true
	for _, name := range o.names() {
		child := o.children[name]
		if !slices.Contains(o.config.Children, name) {
			child.Remove()
			continue
		}
		child.removed = false
		child.Update()
	}
}

// Report is of Target.
func (o *Oracle) Report(name string, r Report) {
	o.event(func() {
		if child, ok := o.children[name]; ok {
			child.report(r.State, r.Line(name), r.Err().Error())
		}
	})
}

// Advance is of Target.
func (o *Oracle) Advance(d time.Duration) {
	for end := o.now + d; ; {
		var first *oracleChild
		for _, name := range o.names() {
			if c := o.children[name]; c.due() <= end && (first == nil || c.due() < first.due()) {
				first = c
			}
		}
		if first == nil {
			o.now = end
			return
		}
		o.now = first.due()
		o.event(first.timePasses)
	}
}

// ExitIdle is of Target.
func (o *Oracle) ExitIdle() {
	if o.currentPriority >= 0 && !o.closed {
		o.write("exit-idle %s", o.config.Priorities[o.currentPriority])
	}
}

// ResolverError is of Target.
func (o *Oracle) ResolverError(err error) {
	for _, name := range o.names() {
		o.write("resolver-error %s %v", name, err)
	}
	if len(o.children) == 0 && !o.closed {
		o.write("publish TRANSIENT_FAILURE: priority: no child to use, and the resolver reports: %v", err)
	}
}

// Resolve is of Target.
func (o *Oracle) Resolve(name string) {
	if o.children[name] != nil && slices.Contains(o.config.Children, name) && !slices.Contains(o.update.Ignore, name) {
		o.write("resolve")
	}
}

// Close is of Target.
func (o *Oracle) Close() {
	o.closed = true
	for _, name := range o.names() {
		o.children[name].destroy()
	}
}

// Take is of Target.
func (o *Oracle) Take() []string {
	log := o.log
	o.log = nil
	return log
}
