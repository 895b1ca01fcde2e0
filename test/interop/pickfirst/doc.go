// Package pickfirst tests gRPC-Go's own policies with this project's pick_first as their child
// policy. It's a separate package because it replaces pick_first in the whole process.
package pickfirst
