// Package pickfirst tests gRPC-Go's own policies with this project's pick_first below them. It is a
// package of its own, because it replaces pick_first in the whole process.
package pickfirst
