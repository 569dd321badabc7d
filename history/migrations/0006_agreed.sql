-- +goose Up
-- What people have agreed, as Redis had it last: for a Redis that has lost it.
create table agreed (
  part   text not null primary key,
  mark   bigint not null, -- grows with each change
  fields text not null,   -- JSON: those of the key in the hub
  at     bigint not null  -- when it was kept
);

-- +goose Down
drop table agreed;
