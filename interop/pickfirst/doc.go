// Package pickfirst tests stock gRPC-Go policies with this project's pick_first. It is a separate
// package because it replaces gRPC-Go's pick_first for the whole process.
package pickfirst
