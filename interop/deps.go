//go:build deps

package interop

import (
	_ "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	_ "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	_ "github.com/understudy-lb/understudy/hierarchy"
	_ "go.uber.org/goleak"
	_ "google.golang.org/grpc/xds"
	_ "pgregory.net/rapid"
)
