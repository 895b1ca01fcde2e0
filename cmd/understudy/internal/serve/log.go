package serve

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"google.golang.org/grpc/grpclog"
)

func newLog(output, level string, w io.Writer) (*slog.Logger, error) {
	var minLevel slog.Level
	if minLevel.UnmarshalText([]byte(level)) != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: minLevel}
	switch output {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("output %q: want text or json", output)
}

// setGRPCLogger makes gRPC and the standard library log to w, because writes to standard error may
// block. gRPC's log level still comes from the environment.
func setGRPCLogger(w io.Writer) {
	log.SetOutput(w)
	info, warning, failure := io.Discard, io.Discard, io.Discard
	switch strings.ToLower(os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL")) {
	case "info":
		info = w
	case "warning":
		warning = w
	case "error", "":
		failure = w
	}
	verbosity, _ := strconv.Atoi(os.Getenv("GRPC_GO_LOG_VERBOSITY_LEVEL"))
	grpclog.SetLoggerV2(grpclog.NewLoggerV2WithVerbosity(info, warning, failure, verbosity))
}
