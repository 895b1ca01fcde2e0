// Package pickfirst tests stock gRPC-Go policies with this project's pick_first, which replaces
// gRPC-Go's for the whole process. It is a separate package for that reason.
package pickfirst
