//go:build deps

// This file keeps the requirements of pieces still being written in go.mod.
package understudy

import (
	_ "github.com/cockroachdb/datadriven"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	_ "github.com/fsnotify/fsnotify"
	_ "go.uber.org/goleak"
	_ "go.yaml.in/yaml/v3"
	_ "google.golang.org/grpc"
	_ "google.golang.org/protobuf/proto"
	_ "pgregory.net/rapid"
)
