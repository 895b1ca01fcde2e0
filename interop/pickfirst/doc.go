// Package pickfirst holds the tests of stock gRPC-Go policies over this project's
// pick_first, registered in place of gRPC-Go's for the whole process. It is a
// package of its own because of that.
package pickfirst
