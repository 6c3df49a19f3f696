// rqlite, for the tests of the engine: make-rqlited.sh builds it.
module sqlipc/tests/rqlite

go 1.23

require github.com/rqlite/rqlite/v8 v8.36.3

// This version's go.mod has the path that the packages import; later ones call themselves github.com/hashicorp/go-metrics.
replace github.com/armon/go-metrics => github.com/armon/go-metrics v0.4.1
