-- +goose Up
-- Who has vouched for the end of a job: node, queue, none (not proven); empty: nobody judged it.
alter table jobs add column proof text not null default '';
