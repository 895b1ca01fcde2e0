package sim

import (
	"fmt"
	"regexp"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// idle reports whether a field was ever set without the other one, and so had no effect.
func (d *detections) idle(field, without string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.ever, func(d detection) bool {
		given := make(map[string]bool)
		d.proto().ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			given[string(f.Name())] = true
			return true
		})
		off := map[string]bool{"enforcing_success_rate": d.rate.enforced == 0, "enforcing_failure_percentage": d.percentage.enforced == 0}
		return given[field] && off[without]
	})
}

var aNote = regexp.MustCompile(`(\w+) has no effect without (\w+)`)

// noteLine checks the log line about fields of outlier detection that have no effect.
func (w *World) noteLine(m []string) string {
	all := w.clusters()
	notes := aNote.FindAllStringSubmatch(m[0], -1)
	for _, note := range notes {
		if !slices.ContainsFunc(all, func(d *detections) bool { return d.idle(note[1], note[2]) }) {
			return fmt.Sprintf("no cluster gives %s without %s", note[1], note[2])
		}
	}
	if len(notes) == 0 {
		return "the line names no field"
	}
	return ""
}

// uselessLine checks the log line which says that outlier detection has no effect with pick_first
// over several endpoints.
func (w *World) uselessLine([]string) string {
	if !w.settings.pickFirst || len(w.clusters()) == 0 {
		return "the channel has no pickFirst, or no clusters"
	}
	return ""
}

func (w *World) clusters() (all []*detections) {
	if s := part[*edsSource](w); s != nil && s.list != nil {
		all = append(all, s.list.detections)
	}
	if s := part[*file](w); s != nil && s.list != nil {
		all = append(all, s.list.detections)
	}
	return all
}
