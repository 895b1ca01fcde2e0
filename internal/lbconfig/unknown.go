package lbconfig

import (
	"reflect"
	"strings"
	"sync"

	"google.golang.org/grpc/grpclog"
)

var logger = grpclog.Component("understudy")

type unknown struct {
	policy string
	in     reflect.Type
	name   string
}

// loggedFields holds the unknown fields that have been logged. Each is logged once, because a
// configuration is parsed repeatedly, and many localities may contain the same mistake.
var loggedFields = struct {
	sync.Mutex
	fields map[unknown]bool
}{fields: make(map[unknown]bool)}

// maxLoggedFields limits loggedFields, because a configuration can contain any number of unknown
// names.
const maxLoggedFields = 1000

func tell(u unknown) bool {
	loggedFields.Lock()
	defer loggedFields.Unlock()
	if loggedFields.fields[u] || len(loggedFields.fields) == maxLoggedFields {
		return false
	}
	loggedFields.fields[u] = true
	return true
}

func (d decoder) logUnknown(path, name string, in reflect.Type, known []field) {
	shown := excerpt([]byte(name))
	if !tell(unknown{d.policy, in, shown}) {
		return
	}
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	logger.Warningf("%s: %s: unknown field, ignored; the known fields are %s (logged once)", d.policy, join(path, shown), strings.Join(names, ", "))
}
