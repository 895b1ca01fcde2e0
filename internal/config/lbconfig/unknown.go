package lbconfig

import (
	"reflect"
	"strings"
	"sync"

	"google.golang.org/grpc/grpclog"
)

var logger = grpclog.Component("understudy")

type unknownField struct {
	policy string
	parent reflect.Type
	name   string
}

// loggedFields holds the unknown fields that have been logged. Each field is logged only once,
// because a configuration is parsed repeatedly, and many localities may contain the same mistake.
var loggedFields = struct {
	sync.Mutex
	fields map[unknownField]bool
}{fields: make(map[unknownField]bool)}

// maxLoggedFields limits loggedFields, because a configuration can contain any number of unknown
// names.
const maxLoggedFields = 1000

func shouldLog(u unknownField) bool {
	loggedFields.Lock()
	defer loggedFields.Unlock()
	if loggedFields.fields[u] || len(loggedFields.fields) == maxLoggedFields {
		return false
	}
	loggedFields.fields[u] = true
	return true
}

func (d decoder) logUnknown(path, name string, parent reflect.Type, known []field) {
	excerpted := excerpt([]byte(name))
	if !shouldLog(unknownField{d.policy, parent, excerpted}) {
		return
	}
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	logger.Warningf("%s: %s: unknown field, ignored; the known fields are %s (logged once)", d.policy, join(path, excerpted), strings.Join(names, ", "))
}
