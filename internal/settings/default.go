package settings

// DefaultConfig is read where it exists and no other file is named.
const DefaultConfig = "/etc/muster/muster.yaml"
