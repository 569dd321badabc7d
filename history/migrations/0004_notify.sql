-- +goose Up
-- What happened, for the rules of notifications; one that was taken stays for a while, so that the
-- same is not taken again.
create table notify_signals (
  key   text not null primary key,
  due   bigint not null,            -- when it is taken
  taken bigint not null default 0,  -- when it was; 0: it waits
  facts text not null               -- JSON
);
create index notify_signals_due on notify_signals (taken, due);

-- Groups of happenings that still collect.
create table notify_groups (
  rule  text not null,
  name  text not null,
  task  text not null,              -- whose end closes it; empty: none
  due   bigint not null,
  facts text not null,              -- JSON
  primary key (rule, name)
);
create index notify_groups_due on notify_groups (due);
create index notify_groups_task on notify_groups (task);

-- How things were told last: only changes are.
create table notify_states (
  name  text not null primary key,
  state text not null,
  at    bigint not null
);

-- Messages on their way to receivers, and those that had arrived or were given up.
create table notify_deliveries (
  id       text not null primary key,
  receiver text not null,
  rule     text not null,
  whats    text not null,
  state    text not null,           -- waiting, delivered, gone, expired
  created  bigint not null,
  next     bigint not null,         -- of the next try
  tries    bigint not null,
  at       bigint not null,         -- of the last try
  error    text not null,           -- of the last try
  tasks    text not null,           -- that it concerns, as JSON
  title    text not null,
  body     text not null            -- the message as JSON: the same in each try
);
create index notify_deliveries_next on notify_deliveries (state, receiver, next);
create index notify_deliveries_created on notify_deliveries (created, id);
