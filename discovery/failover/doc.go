// Package failover resolves a list of targets in priority order: calls go to the first target that
// can be reached.
//
//	conn, err := grpc.NewClient("failover:///us-east.example.com:443,eu-west.example.com:443", …)
//
// Each target of the list is a discovery mechanism with its own resolver and becomes one priority
// of understudy_priority (gRFC A56). Within a priority, calls are distributed over its endpoints by
// weight. Importing the package registers the scheme.
//
// # List
//
// Commas separate the targets. The targets have the same form as for [grpc.NewClient], with these
// differences:
//
//   - a target is percent-decoded once, so that commas and question marks in it are written %2C and %3F;
//
//   - a target with a scheme of this module, such as eds, file or srv, contributes all its priorities, in their order, before those of the next target;
//
//   - a failover target in the list is replaced by its own list;
//
//   - a target of this module, or of one of gRPC's resolvers, may have parameters: authority, the parameters of its source, and, for DNS, refresh and removeAfter (docs/options.md);
//
//   - a target with "://" and an unregistered scheme is an error;
//
//   - a target without a registered scheme is looked up by DNS, regardless of [resolver.SetDefaultScheme]: host:443 is dns:///host:443. As in NewClient, unix:/path and dns:host have a scheme;
//
//   - xds is refused, because it configures load balancing itself.
//
//     failover:///eds://xds.example.com:18000/checkout,srv:///checkout.example.com,backup.example.com:443%3Frefresh=30s
//
// In errors, logs and metrics, and on the debug page, the name of a mechanism is its text in the
// list. Passwords, users without a password, and the values of unknown parameters, which may be
// tokens, are replaced by xxxxx.
//
// A list has at most 64 targets. The same target may occur twice. The failover target has no host
// and no fragment. Its query may have the parameters that every target accepts, such as
// ?failoverTimeout=5s (docs/options.md). understudy.Validate reports mistakes in a target.
// Otherwise, the first call on the channel reports them, because gRPC builds resolvers on demand.
//
// The resolvers of the list are built with service configs disabled. To set the channel's service
// config, use understudy.Options.ServiceConfig.
//
// # Starting
//
// A mechanism without an answer delays the mechanisms behind it for at most the failover timeout
// (10 seconds by default). The channel gets its first update when the first mechanism that has not
// failed has answered, so a slow lookup does not send the first calls to the next target. After
// that, each mechanism joins with its first answer or failure, and each later answer replaces the
// mechanism's previous answer. In gRFC A74, an xDS tree waits for all resources without a limit;
// here, the timeout limits the wait.
//
// A mechanism keeps its last addresses when its resolver fails or answers without addresses, and
// for up to an hour while the channel is idle. A mechanism that has never answered is a failed
// priority, and its calls fail with its error. If no mechanism has an address, calls fail with the
// errors of all mechanisms.
//
// gRPC looks DNS names up again only after a failed connection. With the parameter refresh, names
// are also looked up at an interval, or earlier after a failed lookup, with gRPC's backoff. An address
// is removed after two consecutive answers without it, or after the number that removeAfter sets.
//
// A re-resolution request goes to the mechanism whose connection failed. If there are several
// mechanisms, requests of the channel, which do not name a mechanism, are ignored: otherwise DNS
// names would be looked up for as long as endpoints of another mechanism are down. gRPC's DNS
// resolver looks a name up at most once in 30 seconds.
//
// # Authority and TLS
//
// The channel's authority is that of the first mechanism. The ServerName of each address is the
// authority that a channel to its mechanism alone would have, so that each mechanism is verified
// against its own certificate and receives its own :authority. The ServerName comes only from the
// target: a name that a mechanism's resolver sets is replaced. If the credentials have a name
// (tls.Config.ServerName), addresses have no ServerName. With [grpc.WithAuthority], gRPC ignores
// the names of addresses. In both cases the one name applies to all mechanisms, as with
// ?authority=NAME or understudy.Options.Authority. (gRPC does not look for a name in a bundle of
// credentials: with such a bundle, all mechanisms have the first mechanism's authority.)
//
// # Proxies
//
// If HTTPS_PROXY names a proxy, gRPC sends names to it, unless gRPC is configured to look names
// up itself. Mechanisms that use DNS behave in the same way: their name goes to the proxy, unless
// NO_PROXY lists it or [WithLocalDNSResolution] is set. Two things differ from a channel to one
// target, because gRPC reads the whole list as one host name:
//
//   - a NO_PROXY entry that matches the end of the last target, such as .example.com, makes gRPC use no proxy for any mechanism (the log notes it);
//   - with [grpc.WithNoProxy], which resolvers cannot see, also set WithLocalDNSResolution. Otherwise, a mechanism that the environment would send through the proxy has its name as its only address, and the name is looked up when it is dialled.
package failover
