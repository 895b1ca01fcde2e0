// Package pickfirst tests gRPC-Go's own policies on top of this project's pick_first. It is a
// separate package, because it replaces pick_first in the whole process.
package pickfirst
